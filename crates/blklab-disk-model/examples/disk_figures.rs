//! Prints, for each given disk file, the model's figures beside the published ones:
//! `cargo run --release -p blklab-disk-model --example disk_figures FILE...`

use blklab_disk_model::{DiskModel, Role, validate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let model = DiskModel::parse(&std::fs::read_to_string(&path)?, &path)?;
        println!("{}: {}", model.name(), model.validation().text);
        for check in validate(&model) {
            println!(
                "  {:10} {:24} {:>12.1} {:>12.1} {:4} +-{:>2}%  {}{}",
                if check.role == Role::Checked { "checked" } else { "calibrated" },
                check.figure,
                check.model,
                check.published,
                check.unit,
                check.tolerance_percent,
                if check.met { "met" } else { "NOT MET" },
                check.not_met.map(|reason| format!(": {reason}")).unwrap_or_default(),
            );
        }
    }
    Ok(())
}
