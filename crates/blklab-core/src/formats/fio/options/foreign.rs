//! Options of engines that are not simulated, and of fio's built-in profiles.
//!
//! Names after fio 3.33: `fio --enghelp=ENGINE` and, for engines that are rarely built in, its
//! manual. A row's text about its engine is part of the message that refuses the option.

use super::{JobOption, Status, Takes};

/// Engines of fio that are not simulated.
pub(super) const ENGINES: &[&str] = &[
    "rbd",
    "rados",
    "mmap",
    "splice",
    "netsplice",
    "sg",
    "null",
    "net",
    "cpuio",
    "rdma",
    "e4defrag",
    "falloc",
    "gfapi",
    "gfapi_async",
    "pmemblk",
    "dev-dax",
    "mtd",
    "filecreate",
    "filestat",
    "filedelete",
    "external",
    "libpmem",
    "nbd",
    "http",
    "io_uring_cmd",
    "exec",
    "ftruncate",
    "libblkio",
    "libiscsi",
    "libhdfs",
    "libcufile",
    "libzbc",
    "dfs",
    "nfs",
    "xnvme",
    "ime_psync",
    "ime_psyncv",
    "ime_aio",
    "librpma_apm_server",
    "librpma_apm_client",
    "librpma_gpspm_server",
    "librpma_gpspm_client",
    "windowsaio",
    "solarisaio",
];

const CPUIO: &[&str] = &["cpuio"];
const MMAP: &[&str] = &["mmap"];
const NET: &[&str] = &["net", "netsplice"];
const NET_RDMA_HDFS: &[&str] = &["net", "netsplice", "rdma", "libhdfs"];
const RDMA: &[&str] = &["rdma"];
const FILESTAT: &[&str] = &["filestat"];
const EXEC: &[&str] = &["exec"];
const E4DEFRAG: &[&str] = &["e4defrag"];
const GFAPI: &[&str] = &["gfapi", "gfapi_async"];
const MTD: &[&str] = &["mtd"];
const SG: &[&str] = &["sg"];
const NBD: &[&str] = &["nbd"];
const CEPH: &[&str] = &["rbd", "rados"];
const CEPH_DFS: &[&str] = &["rbd", "rados", "dfs"];
const RBD: &[&str] = &["rbd"];
const RADOS: &[&str] = &["rados"];
const HDFS: &[&str] = &["libhdfs"];
const HDFS_DFS: &[&str] = &["libhdfs", "dfs"];
const DFS: &[&str] = &["dfs"];
const NFS: &[&str] = &["nfs"];
const HTTP: &[&str] = &["http"];
const CUFILE: &[&str] = &["libcufile"];
const XNVME: &[&str] = &["xnvme"];
const RPMA: &[&str] = &["librpma"];

/// A row that is refused, because only these engines have it.
const fn of(name: &'static str, engines: &'static [&'static str], help: &'static str) -> JobOption {
    JobOption { status: Status::OtherEngine(engines), ..JobOption::new(name, Takes::AnyText, "", help) }
}

/// A row that fio accepts in any job and uses only with `profile=`.
const fn profile(name: &'static str, help: &'static str, why: &'static str) -> JobOption {
    JobOption::new(name, Takes::AnyText, "", help).no_effect(why)
}

const ACT: &str = "fio uses it with profile=act only";
const TIOBENCH: &str = "fio uses it with profile=tiobench only";

pub(super) const OPTIONS: &[JobOption] = &[
    of("cpuload", CPUIO, "percentage of CPU to use"),
    of("cpuchunks", CPUIO, "length of a burst of CPU use"),
    of("cpumode", CPUIO, "what to burn the CPU with"),
    of("exit_on_io_done", CPUIO, "end when the I/O jobs end"),
    of("thp", MMAP, "huge pages for the mapping"),
    of("hostname", NET_RDMA_HDFS, "host to connect to"),
    of("port", NET_RDMA_HDFS, "port to connect to"),
    of("protocol", NET, "network protocol").alias(&["proto"]),
    of("nodelay", NET, "TCP_NODELAY"),
    of("listen", NET, "wait for connections"),
    of("pingpong", NET, "answer what comes"),
    of("interface", NET, "network interface"),
    of("ttl", NET, "time to live of packets"),
    of("window_size", NET, "size of the socket's buffer"),
    of("mss", NET, "largest TCP segment"),
    of("bindname", RDMA, "address to bind to"),
    of("verb", RDMA, "RDMA operation"),
    of("stat_type", FILESTAT, "stat or statx"),
    of("program", EXEC, "program to run"),
    of("arguments", EXEC, "its arguments"),
    of("grace_time", EXEC, "time before it is killed"),
    of("std_redirect", EXEC, "redirect its output"),
    of("donorname", E4DEFRAG, "file that gives its blocks"),
    of("inplace", E4DEFRAG, "when to allocate blocks"),
    of("volume", GFAPI, "Gluster volume"),
    of("brick", GFAPI, "Gluster brick"),
    of("single-instance", GFAPI, "one Gluster instance for all"),
    of("skip_bad", MTD, "skip bad blocks"),
    of("readfua", SG, "FUA on reads"),
    of("writefua", SG, "FUA on writes"),
    of("sg_write_mode", SG, "SCSI command to write with"),
    of("stream_id", SG, "stream of WRITE STREAM"),
    of("uri", NBD, "address of the export"),
    of("clustername", CEPH, "Ceph cluster"),
    of("pool", CEPH_DFS, "storage pool"),
    of("clientname", CEPH, "Ceph client"),
    of("busy_poll", CEPH, "poll for completions"),
    of("rbdname", RBD, "RBD image"),
    of("conf", RADOS, "Ceph configuration file"),
    of("touch_objects", RADOS, "create objects first"),
    of("namenode", HDFS, "HDFS name node"),
    of("hdfsdirectory", HDFS, "HDFS directory"),
    of("chunk_size", HDFS_DFS, "bytes of a chunk"),
    of("cont", DFS, "DAOS container"),
    of("object_class", DFS, "DAOS object class"),
    of("nfs_url", NFS, "address of the export"),
    of("http_host", HTTP, "host to connect to"),
    of("http_user", HTTP, "user name"),
    of("http_pass", HTTP, "password"),
    of("https", HTTP, "HTTPS in place of HTTP"),
    of("http_mode", HTTP, "WebDAV, Swift or S3"),
    of("http_s3_region", HTTP, "S3 region"),
    of("http_s3_key", HTTP, "S3 key"),
    of("http_s3_keyid", HTTP, "S3 key's name"),
    of("http_s3_sse_customer_key", HTTP, "S3 encryption key"),
    of("http_s3_sse_customer_algorithm", HTTP, "S3 encryption"),
    of("http_s3_storage_class", HTTP, "S3 storage class"),
    of("http_swift_auth_token", HTTP, "Swift token"),
    of("http_verbose", HTTP, "print what is exchanged"),
    of("gpu_dev_ids", CUFILE, "GPUs to use"),
    of("cuda_io", CUFILE, "way to the GPU's memory"),
    of("xnvme_async", XNVME, "asynchronous interface"),
    of("xnvme_sync", XNVME, "synchronous interface"),
    of("xnvme_admin", XNVME, "interface of admin commands"),
    of("xnvme_dev_nsid", XNVME, "NVMe namespace"),
    of("xnvme_iovec", XNVME, "vectored commands"),
    of("serverip", RPMA, "host to connect to"),
    of("direct_write_to_pmem", RPMA, "write straight to persistent memory"),
    of("busy_wait_polling", RPMA, "poll for completions"),
    profile("device-names", "devices to test", ACT),
    profile("load", "load factor", ACT),
    profile("test-duration", "how long to test", ACT),
    profile("threads-per-queue", "processes per queue", ACT),
    profile("read-req-num-512-blocks", "size of a read", ACT),
    profile("large-block-op-kbytes", "size of a large transfer", ACT),
    profile("prep", "fill the device only", ACT),
    profile("block", "block size", TIOBENCH),
    profile("numruns", "number of runs", TIOBENCH),
    profile(
        "dir",
        "folder of the test's files",
        "fio uses it with profile=tiobench only; the folder of a job's files is directory=",
    ),
    profile(
        "threads",
        "number of processes",
        "fio uses it with profile=tiobench only; threads in place of processes are thread=1",
    ),
];
