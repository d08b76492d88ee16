//! A sandbox around a program: Landlock, and fewer capabilities of root.
//!
//! Landlock is part of the kernel (5.13 and newer) and needs no privileges. After a process has
//! restricted itself, neither it nor any program that it starts can open other files, as any user.
//!
//! Left out: names and sizes of files (`stat`), which Landlock does not cover.

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::io::Errno;
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// The newest version of Landlock that was checked; an older kernel applies what it supports.
const NEWEST: ABI = ABI::V6;

/// Capabilities for other users' files: `sudo blklab` often reads and writes its caller's files.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER);

/// The paths that a program may open; it can open no others.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// May be read, with everything below.
    pub read: Vec<PathBuf>,
    /// Programs there may be started and read.
    pub run: Vec<PathBuf>,
    /// Files there may be changed, but not created or removed.
    pub change: Vec<PathBuf>,
    /// May be changed, with everything below.
    pub write: Vec<PathBuf>,
}

impl Room {
    /// Restricts this process to the room. It can connect to no TCP port either (since Linux 6.7),
    /// and reach no process outside through abstract sockets or signals (since 6.12).
    ///
    /// # Errors
    /// Why there is no sandbox, in one line.
    pub fn enter(&self) -> Result<(), String> {
        let all = AccessFs::from_all(NEWEST);
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)
            .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
            .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
            .and_then(Ruleset::create)
            .map_err(|error| error.to_string())?;
        let rules = allow(rules, &self.read, read)?;
        let rules = allow(rules, &self.run, read | AccessFs::Execute)?;
        let change = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        let rules = allow(rules, &self.change, read | change)?;
        let rules = allow(rules, &self.write, all & !AccessFs::Execute)?;
        if restrict(rules)? { Ok(()) } else { Err("this kernel does not have it".to_owned()) }
    }
}

/// From now on this thread, and every process that it starts, can change only what is below the
/// paths of `write`, and has only the capabilities for files. False where the kernel has no
/// Landlock: then files everywhere may still be changed.
///
/// # Errors
/// One line.
pub fn give_up_rights(write: &[PathBuf]) -> Result<bool, String> {
    drop_capabilities().map_err(|error| format!("capabilities: {error}"))?;
    let all = AccessFs::from_write(NEWEST);
    let rules =
        Ruleset::default().handle_access(all).and_then(Ruleset::create).map_err(|error| error.to_string())?;
    restrict(allow(rules, write, all)?)
}

/// Skips missing paths: they cannot be opened either.
fn allow(
    mut rules: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, String> {
    for path in paths {
        let Ok(found) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        rules = rules
            .add_rule(PathBeneath::new(found, access))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(rules)
}

/// False if the kernel has no Landlock.
fn restrict(rules: RulesetCreated) -> Result<bool, String> {
    let status = rules.restrict_self().map_err(|error| error.to_string())?;
    if !status.no_new_privs {
        return Err("new privileges could not be ruled out".to_owned());
    }
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn drop_capabilities() -> Result<(), Errno> {
    for one in CapabilitySet::all().difference(KEPT).iter() {
        match thread::remove_capability_from_bounding_set(one) {
            // An older kernel does not know it; a user other than root must not set it.
            Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
    }
    let now = thread::capabilities(None)?;
    let kept = CapabilitySets {
        effective: now.effective & KEPT,
        permitted: now.permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    thread::set_capabilities(None, kept)
}
