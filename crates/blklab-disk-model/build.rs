//! Lists the files of `catalogue/`, so that a disk is one new file.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=catalogue");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("catalogue");
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    files.retain(|file| file.path().extension().is_some_and(|kind| kind == "toml"));
    files.sort_by_key(fs::DirEntry::file_name);
    let mut list = String::from("&[\n");
    for path in files.iter().map(fs::DirEntry::path) {
        let name = path.file_stem().expect("it has an extension");
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("a string takes all");
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("catalogue.rs"), list)
}
