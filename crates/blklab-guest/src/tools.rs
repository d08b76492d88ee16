//! For tests: the programs of file systems, as a second witness of what lies on a disk.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while a test has processes: [`crate::program::wait_for`] reaps those of every other test, too.
pub fn children() -> MutexGuard<'static, ()> {
    static CHILDREN: Mutex<()> = Mutex::new(());
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `program` prints about `file`; `None`, which it says, if that is not installed.
///
/// # Panics
/// It fails.
pub fn ask(program: &str, words: &[&str], file: &Path) -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let _children = children();
    let done = match Command::new(program).env("PATH", &path).args(words).arg(file).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: no {program} here");
            return None;
        }
        done => done.unwrap_or_else(|error| panic!("{program}: {error}")),
    };
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    Some(String::from_utf8_lossy(&done.stdout).into_owned())
}
