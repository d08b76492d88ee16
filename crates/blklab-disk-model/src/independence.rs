//! Which checked figures are independent of the file's parameters, and whether they are enough.
//!
//! A figure cannot check a parameter that was chosen from it. The comment after a parameter names the figure
//! that it was chosen from, so a checked figure counts as independent unless a parameter that it would
//! determine names its value or its source.

use super::keys::Parameter;
use super::published::{Published, Role, is_estimate};

/// A model that meets this many independent figures is validated.
pub const NEEDED: usize = 5;

/// The result of the checked figures for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validation {
    /// Whether the model may be called validated, or needs no validation.
    pub validated: bool,
    /// Independent figures: the same measurement in other units counts once.
    pub independent: usize,
    /// The independent figures that the model meets, by its file.
    pub met: usize,
    /// The number of met figures that a validated model needs.
    pub needed: usize,
    /// The result as text.
    pub text: String,
}

impl Validation {
    /// For a model that represents no real disk: its parameters define it completely.
    pub(super) fn exact() -> Validation {
        let text = "exact: the model represents no real disk".to_owned();
        Validation { validated: true, independent: 0, met: 0, needed: 0, text }
    }
}

/// The verdict on a model; `changed` if it is not the disk of its file.
pub(super) fn validation(published: &[Published], parameters: &[Parameter], changed: bool) -> Validation {
    let mut rows: Vec<&Published> = Vec::new();
    for row in published {
        let counted = rows.iter().any(|other| other.figure.is_same_as(row.figure));
        if row.role == Role::Checked && !counted && chosen_from(row, parameters).is_none() {
            rows.push(row);
        }
    }
    let independent = rows.len();
    let met = rows.iter().filter(|row| row.not_met.is_none()).count();
    let validated = met >= NEEDED && !changed;
    let plural = if independent == 1 { "" } else { "s" };
    let text = match (validated, changed) {
        (true, _) => format!("validated: meets {met} of {independent} independent figures"),
        (_, true) => "not validated: changed, the file's figures describe another disk".to_owned(),
        _ if met < independent => {
            format!("not validated: meets {met} of {independent} independent figure{plural}, {NEEDED} needed")
        }
        _ => format!("not validated: {independent} of {NEEDED} independent figures"),
    };
    Validation { validated, independent, met, needed: NEEDED, text }
}

/// The parameter that was chosen from `figure` or from its source, by the parameter's comment.
pub(super) fn chosen_from(figure: &Published, parameters: &[Parameter]) -> Option<&'static str> {
    let determined = figure.figure.determines();
    let mut rows = parameters.iter().filter(|row| determined.contains(&row.key));
    rows.find(|row| {
        names_value(&row.source, figure.value) || publisher(&row.source) == publisher(&figure.source)
    })
    .map(|row| row.key)
}

/// Whether a comment contains this number, as `2200` or `2,200`.
pub(super) fn names_value(comment: &str, value: f64) -> bool {
    let number = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let words = comment.split(|c: char| !number(c));
    words.filter_map(|word| word.replace(',', "").parse::<f64>().ok()).any(|found| found == value)
}

/// The publisher: the text before the first colon, comma or semicolon, without `estimate:`.
fn publisher(source: &str) -> Option<String> {
    let source = match is_estimate(source) {
        true => source.split_once(':')?.1,
        false => source,
    };
    let name = source.split([':', ',', ';']).next().unwrap_or_default().trim().to_lowercase();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::{DiskModel, catalogue};
    use super::*;

    const FILE: &str = r#"
kind = "hdd"
name = "A"
summary = "b"
transport = "sata"
capacity_sectors = 1000000000
link_mb_s = 550
rpm = 7200
heads = 4
outer_sectors_per_track = 1400  # estimate: 100.5 MB/s with the skews
inner_sectors_per_track = 700   # Maker: half of the outer
seek_track_to_track_ms = 1
seek_average_ms = 9             # Maker: 9 ms
seek_full_stroke_ms = 18
write_settle_ms = 0.1
head_switch_ms = 1
track_skew_ms = 1.2
cylinder_skew_ms = 1.2
cache_kib = 8192
cache_segments = 8
read_ahead_kib = 512
write_cache_kib = 1024
write_cache_extents = 64
read_overhead_us = 200
read_hit_us = 100
write_overhead_us = 100
"#;

    fn of(checked: &str) -> Validation {
        DiskModel::parse(&format!("{FILE}\n[checked]\n{checked}"), "f").unwrap().validation()
    }

    #[test]
    fn a_figure_that_shares_source_or_value_with_a_parameter_that_it_determines_is_not_independent() {
        let row = |name: &str, value: &str, source: &str| {
            of(&format!("{name} = {{ value = {value}, tolerance_percent = 5 }} # {source}")).independent
        };
        assert_eq!(row("seq_read_outer_mb_s", "100.5", "Reviewer: so much"), 0, "value of the comment");
        assert_eq!(row("seq_read_outer_mb_s", "100", "Reviewer: so much"), 1);
        assert_eq!(row("seq_read_inner_mb_s", "52", "maker: so much"), 0, "source of inner_sectors");
        assert_eq!(row("rand_read_latency_us", "13000", "Maker, data sheet"), 0, "source of the seek");
        assert_eq!(row("rand_read_qd32_iops", "150", "Maker: depth 32"), 1, "determines no such parameter");
    }

    /// From 16 in flight on the link may decide.
    #[test]
    fn a_deep_queue_does_not_check_a_link_that_was_chosen_from_the_same_source() {
        let independent = |depth: u32, figure: &str| {
            let row =
                format!("rand_read_qd{depth}_{figure} = {{ value = 77, tolerance_percent = 5 }} # fio-plot");
            let text = catalogue::text("mx200-250gb").expect("a shipped disk");
            let (parameters, _) = text.split_once("[calibrated]").expect("it has figures");
            let text = format!("{parameters}[checked]\n{row}");
            DiskModel::parse(&text, "f").expect("a disk").validation().independent
        };
        for figure in ["iops", "p99_us"] {
            assert_eq!((independent(8, figure), independent(16, figure)), (1, 0), "{figure}");
        }
    }

    #[test]
    fn five_met_figures_validate_a_model_and_other_units_count_once() {
        let row = |name: &str, more: &str| {
            format!("{name} = {{ value = 77, tolerance_percent = 5{more} }} # Reviewer\n")
        };
        let four =
            ["seq_read_outer_mb_s", "seq_read_inner_mb_s", "rand_read_qd1_iops", "rand_read_qd32_iops"]
                .map(|name| row(name, ""))
                .concat();
        assert_eq!(of("").text, "not validated: 0 of 5 independent figures");
        let same = of(&format!("{four}{}", row("rand_read_latency_us", "")));
        assert_eq!((same.independent, same.validated), (4, false));
        let missed = of(&format!("{four}{}", row("rand_write_qd1_iops", ", not_met = \"x\"")));
        assert_eq!(missed.text, "not validated: meets 4 of 5 independent figures, 5 needed");
        let five = format!("{four}{}", row("rand_write_qd1_iops", ""));
        assert_eq!(of(&five).text, "validated: meets 5 of 5 independent figures");
        let model = DiskModel::parse(&format!("{FILE}\n[checked]\n{five}"), "f").unwrap();
        let changed = model.with_override("rpm", "5400").unwrap().validation();
        assert!(!changed.validated && changed.text.starts_with("not validated: changed"), "{}", changed.text);
    }

    #[test]
    fn a_figure_that_cannot_check_the_model_is_refused() {
        let refused = |text: &str| DiskModel::parse(&format!("{FILE}{text}"), "f").unwrap_err().to_string();
        let row = "seq_read_outer_mb_s = { value = 99, tolerance_percent = 5 }";
        assert!(
            refused(&format!("[calibrated]\n{row} # A\n[checked]\n{row} # A"))
                .contains("in [calibrated] too")
        );
        assert!(refused(&format!("[checked]\n{row} # estimate: x")).contains("found an estimate"));
        assert!(refused(&format!("[checked]\n{row}")).contains("no source"));
        assert!(refused(&format!("[published]\n{row} # A")).contains("is now [calibrated]"));
    }
}
