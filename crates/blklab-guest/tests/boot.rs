//! The guest in a real kernel: `BLKLAB_TEST_KERNEL` names a user-mode Linux with ublk, and with
//! blklab's driver of disks for the tests of transports.
//!
//! Without it, or where it cannot run, every test prints the reason and passes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use blklab_core::disk::catalogue;
use blklab_core::engine::Watch;
use blklab_core::formats::fio::jobfile::{self, ParseOptions, Resolver};
use blklab_core::host::Host;
use blklab_core::pagecache::MemoryConfig;
use blklab_core::result::RunResult;
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::simulation::{self, Setup};
use blklab_core::workload::plan;
use serde_json::{Value, json};

/// Longer than any of these tests takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn kernel() -> Option<PathBuf> {
    let Some(path) = std::env::var_os("BLKLAB_TEST_KERNEL").map(PathBuf::from) else {
        println!("skipped: BLKLAB_TEST_KERNEL is not set; it names a user-mode Linux kernel with ublk");
        return None;
    };
    assert!(path.is_file(), "BLKLAB_TEST_KERNEL={} is no file", path.display());
    Some(path)
}

fn is_installed(program: &str) -> bool {
    let found =
        ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|p| Path::new(p).join(program).is_file());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// `guest.json` for `command` on a disk with a scheduler.
fn guest(disk: &str, scheduler: &str, command: &[&str]) -> Value {
    let disks = concat!(env!("CARGO_MANIFEST_DIR"), "/../blklab-disk-model/catalogue");
    json!({
        "disk": {"file": fs::canonicalize(format!("{disks}/{disk}.toml")).expect("a shipped disk"), "seed": 1},
        "host_directories": [fs::canonicalize(disks).expect("there")],
        "scheduler": scheduler,
        "run": {"program": {"command": command}},
    })
}

/// Boots, waits for the power-off, and reads `result.json`; also returns the run directory.
fn boot(kernel: &Path, guest: &Value) -> (Value, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = fs::canonicalize(folder.path()).expect("there");
    fs::write(run.join("guest.json"), guest.to_string()).expect("written");
    let console = fs::File::create(run.join("console")).expect("made");
    let mut child = Command::new(kernel)
        .args(["mem=512M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw"])
        .args(["con=null", "con0=fd:0,fd:1", "time-travel=inf-cpu", "seccomp=on", "quiet", "panic=-1"])
        .arg(format!("init={}", env!("CARGO_BIN_EXE_blklab-guest")))
        .arg(format!("blklab.run={}", run.display()))
        .arg(format!("uml_dir={}/", run.display()))
        .stdin(Stdio::null())
        .stdout(console.try_clone().expect("cloned"))
        .stderr(console)
        .spawn()
        .expect("the kernel starts");
    let started = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break Some(status);
        }
        if started.elapsed() > PATIENCE {
            child.kill().expect("it lives");
            child.wait().expect("it is our child");
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let console = fs::read_to_string(run.join("console")).unwrap_or_default();
    assert!(ended.is_some(), "no end after {PATIENCE:?}; console:\n{console}");
    let text = fs::read_to_string(run.join("result.json"));
    let text = text.unwrap_or_else(|error| panic!("no result.json ({error}); console:\n{console}"));
    (serde_json::from_str(&text).expect("good JSON"), folder)
}

fn output(folder: &tempfile::TempDir, kind: &str) -> String {
    fs::read_to_string(folder.path().join(format!("program.{kind}"))).expect("kept")
}

const DD: &[&str] = &["dd", "if={disk}", "of=/dev/null", "bs=64k", "count=64", "iflag=direct"];

#[test]
fn a_program_runs_on_a_punctual_disk_under_the_scheduler_asked_for() {
    let Some(kernel) = kernel() else { return };
    for (disk, scheduler) in [("wd10ezrx", "mq-deadline"), ("su800-128gb", "none"), ("optane-900p", "kyber")]
    {
        let mut guest = guest(disk, scheduler, DD);
        guest["queue"] = json!({"read_ahead_kb": 64});
        let (result, folder) = boot(&kernel, &guest);
        assert_eq!(result["error"], Value::Null);
        assert_eq!(result["scheduler"], scheduler);
        assert_eq!(result["queue"]["read_ahead_kb"], "64");
        assert_eq!(result["queue"]["rotational"], if disk == "wd10ezrx" { "1" } else { "0" });
        assert_eq!(result["program"]["exit_code"], 0, "{}", output(&folder, "stderr"));
        assert_eq!(result["counters"]["read_ios"], 64);
        assert_eq!(result["disk"]["reads"], 64, "nothing but the program's I/O reached the model");
        assert_eq!(result["disk"]["lateness"]["count"], 64);
        // CPU work is free, but without our patch each reading of the clock costs 256 ns, and
        // timers are 500 ns apart.
        let late = result["disk"]["lateness"]["max_ns"].as_u64().expect("a number");
        assert!(late < 3_000, "{late} ns late");
        let again = boot(&kernel, &guest).0;
        assert_eq!(result, again, "the same run gives the same figures");
    }
}

#[test]
fn an_error_is_one_line_in_the_result() {
    let Some(kernel) = kernel() else { return };
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut guest = guest("wd10ezrx", "none", DD);
        change(&mut guest);
        boot(&kernel, &guest).0["error"].as_str().expect("an error").to_owned()
    };
    let scheduler = wrong(&|guest| guest["scheduler"] = json!("cfq"));
    assert!(scheduler.starts_with("scheduler: 'cfq' was not taken (Invalid argument"), "{scheduler}");
    let tunable = wrong(&|guest| guest["queue"] = json!({"nr_request": 3}));
    assert!(tunable.starts_with("queue/nr_request: no such tunable; there are: add_random"), "{tunable}");
    let program = wrong(&|guest| guest["run"] = json!({"program": {"command": ["no-such-program"]}}));
    assert_eq!(program, "no-such-program: cannot be started: No such file or directory (os error 2)");
    let disk = wrong(&|guest| guest["disk"]["overrides"] = json!([["rpm", "fast"]]));
    assert!(disk.contains("in the override rpm=fast: found 'fast'; expected"), "{disk}");
    let unknown = wrong(&|guest| guest["disks"] = json!(1));
    assert!(unknown.contains("guest.json:1:") && unknown.contains("unknown field `disks`"), "{unknown}");
}

#[test]
fn a_file_system_keeps_written_data() {
    let Some(kernel) = kernel() else { return };
    if !is_installed("mkfs.ext4") {
        return;
    }
    let script = "seq 1 300000 >/mnt/numbers && sync && echo 3 >/proc/sys/vm/drop_caches && \
                  sha256sum </mnt/numbers && seq 1 300000 | sha256sum";
    let mut guest = guest("su800-128gb", "mq-deadline", &["sh", "-c", script]);
    guest["file_system"] = json!({"kind": "ext4", "mountpoint": "/mnt"});
    let (result, folder) = boot(&kernel, &guest);
    assert_eq!(result["error"], Value::Null);
    assert_eq!(result["program"]["exit_code"], 0, "{}", output(&folder, "stderr"));
    let sums = output(&folder, "stdout");
    let sums: Vec<_> = sums.lines().collect();
    assert_eq!(sums.len(), 2);
    assert_eq!(sums[0], sums[1], "what was read back is what was written");
    assert!(result["disk"]["writes"].as_u64() > Some(0) && result["disk"]["reads"].as_u64() > Some(0));
}

/// The simulator's own run of `job`, on a host with free CPU work.
fn simulate(disk: &str, scheduler: &str, job: &str) -> RunResult {
    let model = catalogue::model(disk).expect("a shipped disk");
    let file = jobfile::parse(job, "job.fio", &mut Bare, ParseOptions::default()).expect("a good job");
    let setup = Setup {
        plan: &plan::plan(&file, model.limits().capacity.to_bytes(), 1).expect("it fits"),
        disk: model.build(1),
        scheduler: &SchedulerSpec::parse(scheduler).expect("a good scheduler"),
        host: Host::FREE,
        memory: &MemoryConfig::settings(),
        seed: 1,
    };
    simulation::run(setup, &Watch::default()).expect("it runs to its end")
}

struct Bare;

impl Resolver for Bare {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn include(&mut self, path: &str) -> Result<String, String> {
        Err(format!("{path} is not there"))
    }

    fn memory_mib(&self) -> u64 {
        8192
    }

    fn cpus(&self) -> u64 {
        1
    }
}

/// A column of `requests.i64`.
fn column(folder: &tempfile::TempDir, log: &Value, name: &str) -> Vec<i64> {
    let rows = log["rows"].as_u64().expect("a number") as usize;
    let columns = log["columns"].as_array().expect("names");
    let at = columns.iter().position(|column| column == name).expect("it is there");
    let bytes = fs::read(folder.path().join("requests.i64")).expect("kept");
    let values: Vec<_> = bytes.chunks(8).map(|b| i64::from_le_bytes(b.try_into().expect("eight"))).collect();
    values[at * rows..(at + 1) * rows].to_vec()
}

#[test]
fn the_native_driver_and_the_simulator_agree_request_by_request() {
    let Some(kernel) = kernel() else { return };
    let cases = [
        ("none", "ioengine=psync"),
        ("mq-deadline", "ioengine=libaio\niodepth=16"),
        ("kyber", "ioengine=libaio\niodepth=4\nnumjobs=2"),
    ];
    for (scheduler, how) in cases {
        let job = format!("[a]\nfilename=/dev/disk\nrw=randread\ndirect=1\nruntime=2\ntime_based\n{how}\n");
        let mut guest = guest("wd10ezrx", scheduler, &[]);
        guest["log_rows"] = json!(1000);
        guest["run"] = json!({"job": {"text": job, "seed": 1, "driver": "native"}});
        let (result, folder) = boot(&kernel, &guest);
        assert_eq!(result["error"], Value::Null);
        let simulated = simulate("wd10ezrx", scheduler, &job);
        assert_eq!(simulated.overview_stride, 1, "all commands are in the simulator's trace");
        let sectors = column(&folder, &result["log"], "sector");
        assert!(sectors.len() > 100);
        let common = sectors.len().min(simulated.overview.sector.len());
        assert!(sectors.len().abs_diff(simulated.overview.sector.len()) <= 32, "not reaped at the end");
        // Requests submitted at time zero all wait until the kernel's worker first dispatches; the
        // simulator dispatches each at once. After them the order is the same.
        let (kernels, ours) = (&sectors[..common], &simulated.overview.sector[..common]);
        let first = |order: &[i64]| order[..16].iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(first(kernels), first(ours), "{scheduler}: what is dispatched first");
        assert_eq!(kernels[16..], ours[16..], "{scheduler}: order of dispatch");
        let ended = column(&folder, &result["log"], "completed_ns");
        for (row, (kernels, ours)) in ended.iter().zip(&simulated.overview.completed_ns).enumerate().skip(16)
        {
            assert!(
                *kernels == -1 || kernels.abs_diff(*ours) < 200_000,
                "{scheduler}: request {row} ended {kernels}, {ours}"
            );
        }
        let text = fs::read_to_string(folder.path().join("run.json")).expect("kept");
        let native: Value = serde_json::from_str(&text).expect("good JSON");
        for (job, simulated) in
            native["summary"]["jobs"].as_array().expect("a list").iter().zip(&simulated.jobs)
        {
            assert_eq!(job["read"]["ios"], simulated.read.ios, "{scheduler}");
        }
    }
}

/// Runs a script before `disk`; `None` where the kernel has no transport for it.
fn script(kernel: &Path, disk: &str, overrides: &[(&str, &str)], lines: &str) -> Option<(Value, String)> {
    let mut guest = guest(disk, "none", &["sh", "-c", lines]);
    guest["disk"]["overrides"] = json!(overrides);
    let (result, folder) = boot(kernel, &guest);
    assert_eq!(result["error"], Value::Null);
    if result["device"]["transport"] == "ublk" {
        println!("skipped: the kernel has no transports of disks");
        return None;
    }
    assert_eq!(result["program"]["exit_code"], 0, "{}", output(&folder, "stderr"));
    Some((result, output(&folder, "stdout")))
}

#[test]
fn a_disk_is_what_its_transport_makes_of_it() {
    let Some(kernel) = kernel() else { return };
    let lines = "cd /sys/block/$(basename $BLKLAB_DISK) && echo $(basename $BLKLAB_DISK) \
                 $(cat queue/rotational queue/nr_requests queue/fua queue/logical_block_size \
                 queue/physical_block_size size) $(cat queue/write_cache) \
                 $(cat device/queue_depth device/timeout) $(test $(cat queue/discard_max_bytes) = 0 || echo trims)";
    let none = [].as_slice();
    for (disk, overrides, wanted) in [
        // `none` has a request for each tag: of the adapter, whatever the disk takes.
        ("wd10ezrx", none, "sda 1 32 0 512 4096 1953525168 write back 32 30"),
        ("wd10ezrx", &[("ncq", "off")], "sda 1 32 0 512 4096 1953525168 write back 1 30"),
        ("wd10ezrx", &[("write_cache", "off")], "sda 1 32 0 512 4096 1953525168 write through 32 30"),
        ("su800-128gb", &[("fua", "on")], "sda 0 32 1 512 512 250069680 write back 32 30 trims"),
        ("sas-10k", none, "sda 1 1008 0 512 512 1172123568 write through 64 30"),
        ("optane-900p", none, "nvme0n1 0 1023 0 512 512 547002288 write through trims"),
    ] {
        let Some((result, found)) = script(&kernel, disk, overrides, lines) else { return };
        assert_eq!(found.trim(), wanted);
        assert_eq!(result["device"]["hw_queues"], 1, "a guest has one CPU");
    }
}

#[test]
fn discarded_data_read_as_zeros_on_every_transport() {
    let Some(kernel) = kernel() else { return };
    if !is_installed("blkdiscard") {
        return;
    }
    let lines = "seq 1 500000 | head -c 3145728 >/tmp/in && dd if=/tmp/in of=$BLKLAB_DISK bs=1M conv=fsync && \
                 blkdiscard -o 1048576 -l 1048576 $BLKLAB_DISK && echo 3 >/proc/sys/vm/drop_caches && \
                 dd if=$BLKLAB_DISK of=/tmp/out bs=1M count=3 iflag=direct && \
                 (head -c 1048576 /tmp/in; head -c 1048576 /dev/zero; tail -c 1048576 /tmp/in) | \
                 cmp - /tmp/out && echo same";
    // Commands are WRITE SAME, UNMAP, and NVMe's own.
    for transport in ["sata", "sas", "nvme"] {
        let overrides = [("transport", transport)];
        let Some((result, found)) = script(&kernel, "su800-128gb", &overrides, lines) else { return };
        assert_eq!(found.trim(), "same", "{transport}");
        assert_eq!(result["disk"]["discards"], 1, "{transport}");
        assert_eq!(result["device"]["transport"], transport);
    }
}

#[test]
fn a_durable_write_is_one_with_fua_or_is_followed_by_a_flush() {
    let Some(kernel) = kernel() else { return };
    let lines = "dd if=/dev/zero of=$BLKLAB_DISK bs=4k count=20 oflag=direct,dsync";
    for transport in ["sata", "sas", "nvme"] {
        // A synchronous write of a device is followed by a flush in any case (`generic_write_sync`).
        for (fua, flushes) in [("off", 40), ("on", 20)] {
            let overrides = [("transport", transport), ("fua", fua)];
            let Some((result, _)) = script(&kernel, "su800-128gb", &overrides, lines) else { return };
            let disk = &result["disk"];
            assert_eq!((&disk["writes"], &disk["flushes"]), (&json!(20), &json!(flushes)), "{overrides:?}");
        }
    }
}

/// The most requests that a disk had at once.
fn most_at_once(folder: &tempfile::TempDir, log: &Value) -> usize {
    let (arrived, ended) = (column(folder, log, "arrived_ns"), column(folder, log, "completed_ns"));
    let at_disk =
        |at: &i64| arrived.iter().zip(&ended).filter(|&(a, e)| a <= at && (at < e || *e < 0)).count();
    arrived.iter().map(at_disk).max().unwrap_or(0)
}

#[test]
fn a_disk_never_gets_more_commands_than_it_takes() {
    let Some(kernel) = kernel() else { return };
    let job = "[a]\nfilename=/dev/disk\nrw=randread\ndirect=1\nruntime=2\ntime_based\nioengine=libaio\niodepth=64\n";
    for (disk, key, value, depth) in [
        ("wd10ezrx", "queue_depth", "32", 32),
        ("wd10ezrx", "queue_depth", "5", 5),
        ("wd10ezrx", "ncq", "off", 1),
        ("sas-10k", "queue_depth", "48", 48),
    ] {
        for scheduler in ["none", "mq-deadline"] {
            let mut guest = guest(disk, scheduler, &[]);
            guest["disk"]["overrides"] = json!([[key, value]]);
            guest["log_rows"] = json!(1000);
            guest["run"] = json!({"job": {"text": job, "seed": 1, "driver": "native"}});
            let (result, folder) = boot(&kernel, &guest);
            assert_eq!(result["error"], Value::Null);
            assert_eq!(most_at_once(&folder, &result["log"]), depth, "{disk} {value} {scheduler}");
        }
    }
}

#[test]
fn a_flush_has_a_sata_disk_for_itself() {
    let Some(kernel) = kernel() else { return };
    // fsync of fio's libaio jobs comes between queued writes of the other.
    let job = "[global]\nfilename=/dev/disk\nbs=4k\ndirect=1\nruntime=1\ntime_based\n\
               [writes]\nrw=randwrite\nioengine=libaio\niodepth=16\n[syncs]\nrw=randwrite\nfsync=1\n";
    for (transport, alone) in [("sata", true), ("sas", false)] {
        let mut guest = guest("su800-128gb", "none", &[]);
        guest["disk"]["overrides"] = json!([["transport", transport]]);
        guest["log_rows"] = json!(5000);
        guest["run"] = json!({"job": {"text": job, "seed": 1, "driver": "native"}});
        let (result, folder) = boot(&kernel, &guest);
        assert_eq!(result["error"], Value::Null);
        if result["device"]["transport"] == "ublk" {
            println!("skipped: the kernel has no transports of disks");
            return;
        }
        let columns = ["arrived_ns", "completed_ns", "op"].map(|name| column(&folder, &result["log"], name));
        let [arrived, ended, op] = &columns;
        let flushes: Vec<_> = (0..op.len()).filter(|&row| op[row] == 2 && ended[row] >= 0).collect();
        assert!(flushes.len() > 5, "{}", flushes.len());
        let meets = |flush: usize, other: usize| {
            other != flush
                && arrived[other] < ended[flush]
                && (ended[other] > arrived[flush] || ended[other] < 0)
        };
        let shared = flushes.iter().filter(|&&flush| (0..op.len()).any(|other| meets(flush, other))).count();
        assert!(if alone { shared == 0 } else { shared > 5 }, "{transport}: {shared} of {}", flushes.len());
    }
}

#[test]
fn a_command_beyond_its_time_out_is_given_up_and_tried_again() {
    let Some(kernel) = kernel() else { return };
    // The last of 32 reads takes 3.2 s. Time-outs are noticed at whole seconds.
    let lines = "echo 1 >/sys/block/sda/device/timeout; for i in $(seq 32); do \
                 (dd if=$BLKLAB_DISK of=/dev/null bs=4k count=1 skip=${i}00000 iflag=direct || echo failed) & \
                 done; wait; cat /sys/block/sda/device/iotmo_cnt";
    for disk in ["wd10ezrx", "sas-10k"] {
        let slow = [("read_overhead_us", "100000")];
        let Some((result, found)) = script(&kernel, disk, &slow, lines) else { return };
        let given_up = u64::from_str_radix(found.trim().trim_start_matches("0x"), 16);
        let given_up = given_up.unwrap_or_else(|_| panic!("{disk}: {found}"));
        assert!((5..32).contains(&given_up), "{disk}: {given_up}");
        assert_eq!(result["disk"]["reads"], 32 + given_up, "{disk}: each is read again");
        assert_eq!(result["disk"]["errors"], 0);
    }
}
