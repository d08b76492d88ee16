//! Reads a trace and counts its I/Os: what a reader costs without figures and findings.
//!
//! `cargo run --release -p blklab-trace --example read_trace FILE`

use std::path::Path;
use std::process::ExitCode;

use blklab_trace::{Records, Trace, Wanted};

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1) else {
        eprintln!("usage: read_trace FILE");
        return ExitCode::from(2);
    };
    let count = Trace::open(Path::new(&file), &Wanted::default()).and_then(|mut trace| {
        let mut count = 0_u64;
        while trace.next_io()?.is_some() {
            count += 1;
        }
        Ok(count)
    });
    match count {
        Ok(count) => {
            println!("{count}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
