//! Plug-ins that break the rules: each ends with one line, and never with a panic or a wait without an end.

use std::sync::Arc;

use blklab_core::disk::catalogue;
use blklab_core::engine::{RunError, Watch};
use blklab_core::formats::fio::jobfile::{self, Bare};
use blklab_core::host::Host;
use blklab_core::pagecache::MemoryConfig;
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::simulation::{self, Setup};
use blklab_core::workload::plan;
use blklab_plugin_host::{Loaded, load};
use proptest::prelude::*;

const DESCRIPTION: &str =
    "mine\\tmulti-queue\\twhat\\twhom\\t100\\tindexed\\ndepth\\tcount\\t4\\t0\\t9\\thow deep";

/// The functions of a plug-in that serves its latest request first: name, parameters and result, body.
fn functions() -> Vec<(&'static str, &'static str, String)> {
    let at = "(param $now i64) (param $in_flight i32)";
    let of = |name, signature: &'static str, body: &str| (name, signature, body.to_owned());
    let length = DESCRIPTION.replace("\\t", "t").replace("\\n", "n").len();
    let mut all = vec![
        of("interface", "(result i32)", "(i32.const 1)"),
        of("describe", "(result i64)", &format!("(i64.const {})", (1024u64 << 32) | length as u64)),
        of("mailbox", "(result i32)", "(i32.const 64)"),
        of("set", "(param i32) (param i64)", ""),
        of("new", "(param i32 i32 i32 i32 i32 i32 i32)", ""),
        of(
            "insert",
            "(param i32 i32 i32 i64 i32 i32 i64)",
            "(i32.store (i32.add (i32.const 4096) (i32.mul (i32.const 4) (global.get $count))) (local.get 2))
             (global.set $count (i32.add (global.get $count) (i32.const 1)))",
        ),
        of(
            "dispatch",
            "(param i32) (result i64)",
            "(if (i32.eqz (global.get $count)) (then (return (i64.const -1))))
             (global.set $count (i32.sub (global.get $count) (i32.const 1)))
             (i64.load32_u (i32.add (i32.const 4096) (i32.mul (i32.const 4) (global.get $count))))",
        ),
        of("completed", "(param i32)", ""),
        of("grown", "(param i32 i64 i32)", ""),
        of("joined", "(param i32 i32)", "unreachable"),
        of("front", "(param i32 i64 i32 i32) (result i64)", "(i64.const -1)"),
        of("allows", "(param i32 i32 i64 i32 i32) (result i32)", "(i32.const 1)"),
        of("neighbour", "(param i32 i32) (result i64)", "(i64.const -1)"),
        of("depth_limit", "(param i32 i32) (result i32)", "(i32.const -1)"),
        of("timer", "(result i32)", "(i32.const 0)"),
        of("exited", "(param i32)", ""),
    ];
    for (_, signature, _) in &mut all[5..] {
        *signature = format!("{at} {signature}").leak();
    }
    all
}

/// A plug-in in which these functions have other bodies; the body `-` leaves the function out.
fn module(changed: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!(
        "(module (memory (export \"memory\") 2) (global $count (mut i32) (i32.const 0))
         (data (i32.const 64) \"\\ff\\ff\\ff\\ff\\ff\\ff\\ff\\ff\\00\\00\\00\\00\\ff\\ff\\ff\\ff\")
         (data (i32.const 1024) \"{DESCRIPTION}\")"
    );
    for (name, signature, body) in functions() {
        let other = changed.iter().find(|(changed, _)| *changed == name);
        let body = other.map_or(body.as_str(), |(_, body)| body);
        if body != "-" {
            text += &format!("(func (export \"blklab_{name}\") {signature} {body})");
        }
    }
    wat::parse_str(text + ")").expect("good text")
}

fn loaded(changed: &[(&str, &str)]) -> Arc<Loaded> {
    Arc::new(load(&module(changed), format!("{changed:?}")).expect("a plug-in"))
}

fn refused(content: &[u8]) -> String {
    load(content, String::new()).map(|_| ()).expect_err("no plug-in")
}

/// A second of reads and writes under the plug-in.
fn outcome(plugin: &Arc<Loaded>) -> Result<u64, RunError> {
    const JOB: &str =
        "[a]\nrw=randrw\ndirect=1\nsize=64m\nnumjobs=3\nioengine=libaio\niodepth=8\nruntime=1\ntime_based\n";
    let model = catalogue::model("wd10ezrx").expect("a shipped disk");
    let mut machine = Bare { memory_mib: 8192, cpus: 4 };
    let file = jobfile::parse(JOB, "test.fio", &mut machine, Default::default()).expect("a job file");
    let plan = plan::plan(&file, model.limits().capacity.to_bytes(), 1).expect("a plan");
    let scheduler = SchedulerSpec::of_plugin(plugin.info, plugin.made(), &[]).expect("no settings");
    let setup = Setup {
        plan: &plan,
        disk: model.build(1),
        scheduler: &scheduler,
        host: Host::new(&Host::settings()),
        memory: &MemoryConfig::settings(),
        seed: 1,
    };
    simulation::run(setup, &Watch::default()).map(|result| result.disk.read_ios + result.disk.write_ios)
}

/// Why a run under a plug-in with these changes ends.
fn fault(changed: &[(&str, &str)]) -> String {
    match outcome(&loaded(changed)) {
        Err(RunError::Plugin { name: "mine", reason, .. }) => reason,
        other => panic!("{changed:?}: {other:?}"),
    }
}

#[test]
fn a_plugin_that_keeps_the_rules_serves_all_requests() {
    assert!(outcome(&loaded(&[])).expect("a run") > 100);
}

#[test]
fn a_broken_rule_ends_the_run_with_its_reason() {
    let stop = "it stopped: wasm `unreachable` instruction executed";
    assert_eq!(fault(&[("dispatch", "unreachable")]), stop);
    assert_eq!(fault(&[("new", "unreachable")]), stop);
    let endless = "a call did not end within 20000000 instructions";
    assert_eq!(fault(&[("insert", "(loop $l (br $l))")]), endless);
    let memory = "(drop (memory.grow (i32.const 2000)))";
    assert_eq!(fault(&[("completed", memory)]), "it asked for more than 64 MiB of memory");
    let unknown = fault(&[("dispatch", "(i64.const 4000000)")]);
    assert_eq!(unknown, "it dispatched request 4000000, which does not wait");
    assert_eq!(
        fault(&[("dispatch", "(i64.const 0x7fffffffffffffff)")]),
        unknown.replace("4000000", "4294967295")
    );
    let front = fault(&[("front", "(i64.const 99)")]);
    assert_eq!(front, "it would merge a bio into request 99, which does not wait");
    assert_eq!(fault(&[("mailbox", "(i32.const -8)")]), "its mailbox is outside its memory");
}

#[test]
fn a_request_dispatched_twice_is_named() {
    let twice = "(i64.load32_u (i32.const 4096))";
    let reason = fault(&[("dispatch", twice)]);
    assert!(
        reason.starts_with("it dispatched request ") && reason.ends_with(", which does not wait"),
        "{reason}"
    );
}

#[test]
fn requests_that_are_never_dispatched_end_the_run_after_a_minute() {
    let none = loaded(&[("dispatch", "(i64.const -1)")]);
    let Err(RunError::Plugin { at, reason, .. }) = outcome(&none) else { panic!("it has ended") };
    assert_eq!(reason, "it holds 24 requests and has dispatched none for 60 s");
    assert!((60..61).contains(&(at.0 / 1_000_000_000)));
    // One is forgotten, all others are served.
    let first = "(if (i32.eqz (local.get 2)) (then (return)))";
    let insert = functions().into_iter().find(|one| one.0 == "insert").expect("it is there").2;
    let reason = fault(&[("insert", &format!("{first}{insert}"))]);
    assert!(reason.contains("has dispatched none for 60 s"), "{reason}");
}

#[test]
fn timers_that_stand_still_or_come_to_nothing_end_the_run() {
    let mailbox = |value: &str| format!("(i64.store (i32.const 64) {value})");
    let now = mailbox("(local.get 0)");
    let still = fault(&[("insert", &now), ("timer", &format!("{now} (i32.const 0)"))]);
    assert_eq!(still, "its next timer is not after this one");
    let next = mailbox("(i64.add (local.get 0) (i64.const 1))");
    let timer = format!("{next} (i32.const 0)");
    let vain = fault(&[("insert", &next), ("timer", &timer), ("dispatch", "(i64.const -1)")]);
    assert_eq!(vain, "1000000 timers in a row came to nothing");
}

#[test]
fn a_file_that_is_no_plugin_is_refused() {
    assert_eq!(refused(b""), refused(b"\x7fELF"));
    assert_eq!(refused(b""), "is not WebAssembly; expected a file built for wasm32-unknown-unknown");
    let content = module(&[]);
    let half = refused(&content[..content.len() / 2]);
    assert!(half.starts_with("is no valid WebAssembly: ") && half.lines().count() == 1, "{half}");
    let empty = wat::parse_str("(module (memory (export \"memory\") 1))").expect("good text");
    assert_eq!(refused(&empty), "is no plug-in of blklab: it has no function blklab_interface");
    let import = wat::parse_str("(module (import \"wasi\" \"exit\" (func)))").expect("good text");
    assert!(refused(&import).starts_with("needs wasi.exit, which blklab does not have; expected a file"));
    let version = refused(&module(&[("interface", "(i32.const 2)")]));
    assert_eq!(version, "was built for version 2 of the interface; this blklab has version 1");
    let missing = refused(&module(&[("timer", "-")]));
    assert_eq!(missing, "its function blklab_timer is missing or has other parameters");
    let outside = refused(&module(&[("describe", "(i64.const -1)")]));
    assert_eq!(outside, "has its description outside its memory");
    let wrong = refused(&module(&[("describe", "(i64.const 0)")]));
    assert_eq!(wrong, "describes itself wrongly: expected 6 fields, found '1'");
    let memory = wat::parse_str("(module (memory (export \"memory\") 2000))").expect("good text");
    assert!(refused(&memory).starts_with("does not start: "), "{}", refused(&memory));
}

#[test]
fn a_wrong_description_is_refused() {
    let described = |text: &str| {
        let stores: String = text
            .bytes()
            .enumerate()
            .map(|(at, byte)| format!("(i32.store8 (i32.const {}) (i32.const {byte}))", 2048 + at))
            .collect();
        let place = (2048u64 << 32) | text.len() as u64;
        refused(&module(&[("describe", &format!("{stores} (i64.const {place})"))]))
    };
    let with = |line: &str| described(&format!("mine\tmulti-queue\ta\tb\t1\tnever\n{line}"));
    assert_eq!(
        described("bfq\tmulti-queue\ta\tb\t1\tnever"),
        "has the name 'bfq' of one of blklab's own schedulers; expected another"
    );
    assert!(described("a b\tmulti-queue\ta\tb\t1\tnever").contains("expected a name of letters"));
    assert!(
        described("mine\tno\ta\tb\t1\tnever").ends_with("expected single-queue or multi-queue, found 'no'")
    );
    assert!(
        described("mine\tmulti-queue\ta\tb\t1\tno")
            .ends_with("expected never, latest or indexed, found 'no'")
    );
    assert!(described("mine\tmulti-queue\ta\tb\t-1\tnever").contains("expected lock_ns of 0 to 1000000"));
    assert!(with("x\tcount\t5\t0\t4\thelp").contains("expected x of 0 to 4, found '5'"));
    assert!(with("x\tcount\ty\t0\t4\thelp").contains("expected a whole number, found 'y'"));
    assert!(with("x\tmiles\t1\t0\t4\thelp").contains("expected a unit, found 'miles'"));
    assert!(with("nr_requests\tcount\t1\t0\t4\thelp").contains("not one of the queue's"));
    assert!(
        with("x\tflag\t1\t0\t1\th\nx\tflag\t1\t0\t1\th").contains("expected each tunable once, found 'x'")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    /// A damaged plug-in is refused in one line, or is still a plug-in. Then its run ends.
    #[test]
    fn a_damaged_plugin_ends_in_one_line(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        kept in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut content = module(&[]);
        for (place, byte) in damage {
            let place = place.index(content.len());
            content[place] = byte;
        }
        if cut {
            content.truncate(kept.index(content.len()));
        }
        match load(&content, "damaged".to_owned()) {
            Err(why) => prop_assert_eq!(why.lines().count(), 1),
            Ok(plugin) => if let Err(error) = outcome(&Arc::new(plugin)) {
                prop_assert!(matches!(error, RunError::Plugin { .. }), "{}", error);
                prop_assert_eq!(error.to_string().lines().count(), 1);
            },
        }
    }
}
