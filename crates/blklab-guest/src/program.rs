//! Running programs as the first process, which must also reap all orphans.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use blklab_core::units::Nanos;
use blklab_disk::service::clock;
use rustix::process::{WaitOptions, wait};
use serde::Serialize;

/// The search path for programs: Debian's, with the administrator's directories.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// Its exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that killed it, if any.
    pub signal: Option<i32>,
    /// Its duration by the guest's `CLOCK_MONOTONIC`, ns: virtual time under time travel.
    pub duration_ns: u64,
}

impl Ended {
    /// Its exit code is 0.
    pub fn is_good(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// Runs a program to its end, with its output in `NAME.stdout` and `NAME.stderr` of `directory`.
///
/// # Errors
/// One line: it could not be started.
pub fn run(
    name: &str,
    words: &[String],
    environment: impl IntoIterator<Item = (String, String)>,
    start_in: &Path,
    directory: &Path,
) -> Result<Ended, String> {
    let started = clock();
    let child = start(
        words,
        environment,
        start_in,
        Stdio::null(),
        [output(name, "stdout", directory)?.into(), output(name, "stderr", directory)?.into()],
    )?;
    wait_for(&child, &words[0], started)
}

/// The file for a program's output of that kind, new.
///
/// # Errors
/// One line.
pub fn output(name: &str, kind: &str, directory: &Path) -> Result<File, String> {
    let path = directory.join(format!("{name}.{kind}"));
    File::create(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Starts a program; its standard output and standard error go to `outputs`.
///
/// # Errors
/// One line: it could not be started.
pub fn start(
    words: &[String],
    environment: impl IntoIterator<Item = (String, String)>,
    start_in: &Path,
    input: Stdio,
    outputs: [Stdio; 2],
) -> Result<Child, String> {
    let (program, arguments) = words.split_first().ok_or("an empty command")?;
    let [stdout, stderr] = outputs;
    Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/tmp")
        .envs(environment)
        .current_dir(start_in)
        .stdin(input)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .map_err(|error| format!("{program}: cannot be started: {error}"))
}

/// Waits until that child has ended, and reaps all others that end meanwhile. Its duration counts
/// from `started`.
///
/// # Errors
/// One line: the kernel's error.
pub fn wait_for(child: &Child, program: &str, started: Nanos) -> Result<Ended, String> {
    let child = child.id();
    loop {
        let (pid, status) = match wait(WaitOptions::empty()) {
            Ok(Some(ended)) => ended,
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(format!("waiting for {program}: {error}")),
        };
        if pid.as_raw_nonzero().get().unsigned_abs() == child && (status.exited() || status.signaled()) {
            return Ok(Ended {
                exit_code: status.exit_status(),
                signal: status.terminating_signal(),
                duration_ns: clock().saturating_sub(started).0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> (Ended, String, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let words = ["sh", "-c", script].map(str::to_owned);
        let environment = [("GREETING".to_owned(), "hello".to_owned())];
        let ended = run("program", &words, environment, folder.path(), folder.path()).expect("sh is there");
        let read =
            |kind| std::fs::read_to_string(folder.path().join(format!("program.{kind}"))).expect("kept");
        (ended, read("stdout"), read("stderr"))
    }

    #[test]
    fn exit_codes_signals_and_output_are_kept() {
        let _children = crate::tools::children();
        let (ended, out, err) = sh("echo $GREETING; echo oh >&2; exit 7");
        assert_eq!((ended.exit_code, ended.signal), (Some(7), None));
        assert_eq!((out.as_str(), err.as_str()), ("hello\n", "oh\n"));
        let (ended, ..) = sh("kill -KILL $$");
        assert_eq!((ended.exit_code, ended.signal), (None, Some(9)));
        let (ended, ..) = sh("(sleep 0.05; exit 3) & exit 0");
        assert!(ended.is_good());
        let folder = tempfile::tempdir().expect("a folder");
        let missing = run("x", &["/no/such".to_owned()], [], folder.path(), folder.path()).unwrap_err();
        assert_eq!(missing, "/no/such: cannot be started: No such file or directory (os error 2)");
    }
}
