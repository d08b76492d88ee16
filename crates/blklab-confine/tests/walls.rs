//! What a confined program can and cannot do, tested with a shell.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_blklab-confine");

/// Runs a shell script that may write only to `own`.
fn confined(own: &Path, script: &str) -> Output {
    Command::new(PROGRAM)
        .args([
            "--read",
            "/etc/ld.so.cache",
            "--run",
            "/usr",
            "--run",
            "/bin",
            "--run",
            "/lib",
            "--run",
            "/lib64",
        ])
        .args([Path::new("--write"), Path::new("/dev/null"), Path::new("--write"), own])
        .args(["--", "/bin/sh", "-c", script])
        .output()
        .expect("the program is built")
}

fn has_landlock() -> bool {
    let found = Command::new(PROGRAM).arg("--check").status().expect("the program is built").success();
    if !found {
        eprintln!("skipped: this kernel has no Landlock");
    }
    found
}

#[test]
fn a_confined_program_changes_its_own_directory_and_nothing_else() {
    if !has_landlock() {
        return;
    }
    let (own, others) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    let victim = others.path().join("victim");
    fs::write(&victim, "precious").expect("a file");
    let victim_text = victim.display();
    let ended = confined(own.path(), &format!("cd {} && echo x >mine && cat mine", own.path().display()));
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(0), b"x\n".as_slice()), "{ended:?}");
    for script in [
        format!("echo x >{victim_text}"),
        format!("echo x >>{victim_text}"),
        format!(": >{victim_text}"),
        format!("cat {victim_text}"),
        format!("rm {victim_text}"),
        format!("mv {victim_text} {}", own.path().display()),
        format!("ln {victim_text} {}/link && echo x >{0}/link", own.path().display()),
        format!("ln -s {victim_text} {0}/soft && echo x >{0}/soft", own.path().display()),
        format!("echo x >{}/new", others.path().display()),
        format!("mkdir {}/new", others.path().display()),
        "cat /etc/passwd".to_owned(),
    ] {
        assert_ne!(confined(own.path(), &script).status.code(), Some(0), "{script}");
    }
    assert_eq!(fs::read(&victim).expect("it is there"), b"precious");
    assert_eq!(fs::read_dir(others.path()).expect("it is there").count(), 1);
}

#[test]
fn without_memory_the_confined_program_is_killed_first_and_leaves_no_core_file() {
    if !has_landlock() {
        return;
    }
    let own = TempDir::new().expect("a directory");
    let ended = Command::new(PROGRAM)
        .args(["--read", "/etc", "--read", "/proc", "--run", "/usr", "--run", "/lib", "--run", "/lib64"])
        .args([Path::new("--write"), own.path()])
        .args(["--", "/usr/bin/sh", "-c", "read score </proc/self/oom_score_adj; echo $score $(ulimit -c)"])
        .output()
        .expect("the program is built");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "1000 0\n", "{ended:?}");
}

#[test]
fn a_program_that_is_not_there_is_one_line() {
    let ended = Command::new(PROGRAM).args(["--", "/no/such"]).output().expect("the program is built");
    assert_eq!(ended.status.code(), Some(125));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
}
