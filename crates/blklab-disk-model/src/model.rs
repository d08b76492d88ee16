//! A disk from its TOML file: parsed, checked, ready to be built.
//!
//! Every key is in [`HDD_KEYS`], [`SSD_KEYS`] or [`CONSTANT_KEYS`]; the comment after a value is that value's
//! source and is stored with it.

use toml::de::DeTable;

use super::any::AnyDisk;
use super::constant::{Constant, ConstantConfig};
use super::file::{File, other, plain, unknown};
use super::hdd::{Hdd, HddConfig, LongestWait};
use super::independence::{self, Validation};
use super::keys::{
    Absent, CONSTANT_KEYS, Conflict, HDD_KEYS, KINDS, Key, Parameter, SSD_KEYS, Value, Values, conflict,
};
use super::published::{self, Published};
use super::ranges;
use super::ssd::{Ssd, SsdConfig};
use super::{DiskLimits, Sector};
use blklab_base::input_error::InputError;

/// Tags of a SATA host adapter (`AHCI_MAX_CMDS`).
const SATA_ADAPTER_TAGS: u32 = 32;
/// Tags of a SAS host adapter: estimate; real ones have hundreds to thousands. The adapter of a guest's
/// SAS disks has as many.
const SAS_ADAPTER_TAGS: u32 = 1008;
/// `NVME_MAX_BYTES` of Linux's NVMe driver, 8 MiB. What the drive itself takes (MDTS) is `max_hw_sectors_kib`.
const NVME_MAX_SECTORS: u32 = 16_384;
/// The tables of a disk file.
const TABLES: [&str; 3] = [published::TABLES[0], published::TABLES[1], "ranges"];
/// The source of a value that an override has set.
const OVERRIDE: &str = "override";

/// The parameters of the model of each kind.
#[derive(Clone, Debug)]
enum Config {
    Hdd(HddConfig),
    Ssd(SsdConfig),
    Constant(ConstantConfig),
}

/// A disk model read from TOML.
#[derive(Clone, Debug)]
pub struct DiskModel {
    path: String,
    values: Values,
    sources: Vec<String>,
    ranges: Vec<Option<[f64; 2]>>,
    published: Vec<Published>,
    limits: DiskLimits,
    config: Config,
}

impl DiskModel {
    /// Reads a disk file. `path` is only for messages.
    ///
    /// # Errors
    /// Text that is not TOML, a key that the kind does not have, a value outside its bounds, a missing
    /// required key, values that contradict each other. Each error names its line.
    pub fn parse(text: &str, path: &str) -> Result<DiskModel, InputError> {
        let file = File { text, path };
        let root = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            file.error(at, None, InputError::new(format!("not TOML: {}", error.message().replace('\n', " "))))
        })?;
        let mut entries: Vec<_> = root.get_ref().iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);

        let kind = entries.iter().find(|(name, _)| name.get_ref() == "kind");
        let table = match kind.map(|(_, value)| (value.get_ref().as_str(), value.span())) {
            Some((Some("hdd"), _)) => HDD_KEYS,
            Some((Some("ssd"), _)) => SSD_KEYS,
            Some((Some("constant"), _)) => CONSTANT_KEYS,
            Some((_, span)) => {
                return Err(file.error(span.start, Some("kind"), other(file.slice(&span), kinds())));
            }
            None => {
                let missing = InputError::new(format!("missing; expected {}", kinds())).expected(kinds());
                return Err(file.error(0, Some("kind"), missing));
            }
        };

        let mut values = vec![None; table.len()];
        let mut places = vec![0; table.len()];
        let mut sources = vec!["default".to_owned(); table.len()];
        let mut tables = [None; TABLES.len()];
        for (name, value) in entries {
            let (word, at) = (name.get_ref().as_ref(), name.span().start);
            if let Some(index) = TABLES.iter().position(|known| *known == word) {
                tables[index] = Some(value);
                continue;
            }
            let Some(index) = table.iter().position(|k| k.name == word) else {
                if word == "published" {
                    let message = "is now [calibrated], for figures that parameters were chosen from, and [checked], for all others";
                    return Err(file.error(at, Some(word), InputError::new(message)));
                }
                let mut names: Vec<_> = table.iter().map(|k| k.name).collect();
                names.extend(TABLES);
                return Err(file.error(at, Some(word), unknown("key", word, &names)));
            };
            let key = &table[index];
            let Some(found) = plain(value.get_ref()).and_then(|v| key.check(v)) else {
                let wrong = other(file.slice(&value.span()), expected(key));
                return Err(file.error(value.span().start, Some(word), wrong));
            };
            values[index] = Some(found);
            places[index] = at;
            sources[index] = file.comment(&value.span());
        }
        for (index, key) in table.iter().enumerate() {
            match (key.absent, &values[index]) {
                (Absent::Error, None) => {
                    let message = format!("missing; expected {}: {}", expected(key), key.help);
                    let missing = InputError::new(message).expected(expected(key));
                    return Err(file.error(0, Some(key.name), missing));
                }
                (Absent::Default(default), None) => values[index] = key.read(default),
                _ => {}
            }
        }
        let values = Values { table, values };
        let (limits, config) = configure(&values).map_err(|Conflict { key, message }| {
            let index = table.iter().position(|k| k.name == key);
            file.error(index.map_or(0, |i| places[i]), Some(key), InputError::new(message))
        })?;
        let [calibrated, checked, own] = tables;
        let published = published::parse(&file, calibrated, checked)?;
        let own = match own {
            Some(table) => ranges::parse(&file, table, &values)?,
            None => vec![None; values.table.len()],
        };
        let ranges = ranges::ranges(&values, &sources, &published, &own);
        Ok(DiskModel { path: path.to_owned(), values, sources, ranges, published, limits, config })
    }

    /// The same disk with one key changed, as in `--disk wd10ezrx:ncq=off`. Lists are
    /// written with `/` between their numbers.
    ///
    /// # Errors
    /// As [`DiskModel::parse`], without a line.
    pub fn with_override(&self, key: &str, value: &str) -> Result<DiskModel, InputError> {
        let fail = |wrong: InputError| InputError {
            reason: format!("{key}: in the override {key}={value}: {}", wrong.reason),
            file: Some(self.path.clone()),
            option: Some(key.to_owned()),
            ..wrong
        };
        let table = self.values.table;
        let Some(index) = table.iter().position(|k| k.name == key) else {
            let names: Vec<_> = table.iter().map(|k| k.name).collect();
            return Err(fail(unknown("key", key, &names)));
        };
        if key == "kind" {
            return Err(fail(InputError::new("a disk's kind cannot be changed")));
        }
        let Some(new) = table[index].read(value) else {
            let expected = expected(&table[index]);
            let message = format!("found '{value}'; expected {expected}");
            return Err(fail(InputError::new(message).found(value).expected(expected)));
        };
        let mut model = self.clone();
        model.values.values[index] = Some(new);
        model.sources[index] = OVERRIDE.to_owned();
        model.ranges[index] = None;
        (model.limits, model.config) = configure(&model.values)
            .map_err(|conflict| fail(InputError::new(format!("{}: {}", conflict.key, conflict.message))))?;
        Ok(model)
    }

    /// The idle disk. `seed` sets the platter's angle at time zero.
    pub fn build(&self, seed: u64) -> AnyDisk {
        match &self.config {
            Config::Hdd(config) => AnyDisk::Hdd(Hdd::new(config.clone(), self.limits.clone(), seed)),
            Config::Ssd(config) => AnyDisk::Ssd(Ssd::new(config.clone(), self.limits.clone())),
            Config::Constant(config) => AnyDisk::Constant(Constant::new(*config, self.limits.clone())),
        }
    }

    /// Maker's name.
    pub fn name(&self) -> &str {
        self.values.text("name")
    }

    /// Its summary, in one line.
    pub fn summary(&self) -> &str {
        self.values.text("summary")
    }

    /// `sata`, `sas` or `nvme`.
    pub fn transport(&self) -> &str {
        self.values.text("transport")
    }

    /// Its properties for the host.
    pub fn limits(&self) -> &DiskLimits {
        &self.limits
    }

    /// The table of keys of its kind.
    pub fn keys(&self) -> &'static [Key] {
        self.values.table
    }

    /// Every parameter with unit, meaning and source, in the table's order.
    pub fn parameters(&self) -> Vec<Parameter> {
        let rows = self.values.table.iter().zip(&self.values.values).zip(&self.sources).zip(&self.ranges);
        rows.map(|(((key, value), source), range)| Parameter {
            key: key.name,
            value: value.as_ref().map(Value::to_string).unwrap_or_default(),
            unit: key.unit,
            help: key.help,
            source: source.clone(),
            range: *range,
        })
        .collect()
    }

    /// Its published figures; see [`super::validate`].
    pub fn published(&self) -> &[Published] {
        &self.published
    }

    /// The verdict of the checked figures on it.
    pub fn validation(&self) -> Validation {
        if let Config::Constant(_) = self.config {
            return Validation::exact();
        }
        let changed = self.sources.iter().any(|source| source == OVERRIDE);
        independence::validation(&self.published, &self.parameters(), changed)
    }

    /// The parameter that was chosen from a checked figure after all, according to the file's comments.
    pub fn chosen_from(&self, figure: &Published) -> Option<&'static str> {
        independence::chosen_from(figure, &self.parameters())
    }

    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    pub(super) fn ranges(&self) -> &[Option<[f64; 2]>] {
        &self.ranges
    }

    /// The longest time of a command in a hard disk with at most `depth` commands, none longer than `largest`
    /// sectors; no bound is known for flash.
    pub fn longest_wait(&self, depth: u32, largest: u32) -> Option<LongestWait> {
        match &self.config {
            Config::Hdd(config) => Some(config.longest_wait(u64::from(depth), u64::from(largest))),
            Config::Ssd(_) | Config::Constant(_) => None,
        }
    }

    #[cfg(test)]
    pub(super) fn hdd(&self) -> &HddConfig {
        match &self.config {
            Config::Hdd(config) => config,
            Config::Ssd(_) | Config::Constant(_) => panic!("only a hard disk has a geometry"),
        }
    }

    /// The same file with other values; `None` if they contradict each other.
    pub(super) fn with_values(&self, values: Values) -> Option<DiskModel> {
        let (limits, config) = configure(&values).ok()?;
        Some(DiskModel { values, limits, config, ..self.clone() })
    }

    /// The same flash disk with 1/`divisor` of its blocks' pages, for measurements on a full disk: the number
    /// of blocks and the spare share stay, and so does write amplification.
    pub(super) fn shrunk(&self, divisor: u64) -> DiskModel {
        let mut model = self.clone();
        if let Config::Ssd(config) = &mut model.config {
            config.shrink(divisor);
            model.limits.capacity = Sector(config.capacity_sectors);
        }
        model
    }
}

fn configure(values: &Values) -> Result<(DiskLimits, Config), Conflict> {
    let kind = values.text("kind");
    let (is_hdd, is_flash) = (kind == "hdd", kind == "ssd");
    let hw_queues = if is_hdd { 1 } else { values.whole("hw_queues") as u16 };
    if hw_queues > 1 && values.text("transport") != "nvme" {
        return conflict("hw_queues", format!("found {hw_queues}; only nvme has more than one"));
    }
    let queue_depth = values.whole("queue_depth") as u32;
    if values.text("transport") == "sata" && queue_depth > 32 {
        return conflict("queue_depth", format!("found {queue_depth}; SATA takes at most 32"));
    }
    for name in ["logical_block_bytes", "physical_block_bytes"] {
        if !values.whole(name).is_power_of_two() {
            return conflict(name, format!("found {}; expected a power of two", values.whole(name)));
        }
    }
    let protected = is_flash && values.flag("power_loss_protection");
    let direct = is_flash && values.text("medium") == "3dxpoint";
    let is_real = is_hdd || is_flash;
    let limits = DiskLimits {
        capacity: Sector(values.whole("capacity_sectors")),
        rotational: is_hdd || !is_flash && values.flag("rotational"),
        queue_depth: if !is_real || values.flag("ncq") { queue_depth } else { 1 },
        adapter_tags: match values.text("transport") {
            "sata" => Some(SATA_ADAPTER_TAGS),
            "sas" => Some(SAS_ADAPTER_TAGS),
            _ => None,
        },
        flush_alone: values.text("transport") == "sata",
        hw_queues,
        max_hw_sectors: max_hw_sectors(values),
        logical_block_bytes: values.whole("logical_block_bytes") as u32,
        physical_block_bytes: values.whole("physical_block_bytes") as u32,
        volatile_write_cache: is_real && values.flag("write_cache") && !protected && !direct,
        fua: is_real && values.flag("fua"),
    };
    let config = match kind {
        "hdd" => Config::Hdd(HddConfig::new(values)?),
        "ssd" => Config::Ssd(SsdConfig::new(values)?),
        _ => Config::Constant(ConstantConfig::new(values)),
    };
    Ok((limits, config))
}

/// The largest command, within what the host's driver can do.
fn max_hw_sectors(values: &Values) -> u32 {
    let own = (values.whole("max_hw_sectors_kib") * 2) as u32;
    if values.text("transport") == "nvme" { own.min(NVME_MAX_SECTORS) } else { own }
}

/// The kinds of disks, for a message: "a", "b" or "c".
fn kinds() -> String {
    let quoted: Vec<_> = KINDS.iter().map(|kind| format!("\"{kind}\"")).collect();
    let (last, others) = quoted.split_last().expect("there are kinds");
    format!("{} or {last}", others.join(", "))
}

fn expected(key: &Key) -> String {
    match key.unit {
        "" => key.allowed.to_string(),
        unit => format!("{} {unit}", key.allowed),
    }
}
