//! The bytes that processes gave to write calls: `wchar` of `/proc/PID/io`.
//!
//! The kernel adds a process's count to its parent's when the parent reaps it, and the first process
//! reaps all orphans. So the counts of all processes, those that have ended included, are the sum
//! over the living ones. The threads of the first process itself serve the disk and do not count.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes since boot; None if the kernel does not count them.
pub fn written_by_calls() -> Option<u64> {
    let proc = Path::new("/proc");
    let of_first = of(&proc.join("1/io"))?;
    let threads = children(&proc.join("1/task")).filter_map(|thread| of(&thread.join("io")));
    let reaped = of_first.saturating_sub(threads.sum());
    let living =
        children(proc).filter(|place| !place.ends_with("1")).filter_map(|place| of(&place.join("io")));
    Some(reaped + living.sum::<u64>())
}

/// Directories with a number as their name.
fn children(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<u32>().is_ok())
    })
}

fn of(path: &Path) -> Option<u64> {
    wchar(&fs::read_to_string(path).ok()?)
}

fn wchar(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("wchar:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_found_by_its_name() {
        assert_eq!(wchar("rchar: 5\nwchar: 4711\nsyscr: 1\nwrite_bytes: 4096\n"), Some(4711));
        assert_eq!(wchar("rchar: 5\n"), None);
    }

    #[test]
    fn only_numbers_are_processes() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["1", "17", "self", "fs"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        let mut found: Vec<_> = children(folder.path()).collect();
        found.sort();
        assert_eq!(found, [folder.path().join("1"), folder.path().join("17")]);
    }
}
