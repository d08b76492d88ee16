//! Damaged traces of every format: read, or refused with a reason; never a panic.

mod written;

use blklab_base::recorded::{Io, Tables};
use blklab_trace::formats;
use blklab_trace::recording::Writer;
use blklab_trace::{Wanted, recording};
use proptest::prelude::*;
use written::*;

/// A trace of each kind, some of which the formats detect only while they are whole.
fn whole() -> Vec<Vec<u8>> {
    let raws = numbered([read(1_000_000, 800, 8, 10), read(1_050_000, 64, 128, 11)].concat());
    let names = [(10, "fio"), (11, "my prog[1]")];
    let mut writer = Writer::new(Vec::new(), &Default::default()).expect("memory");
    writer.push(&Io::default(), &Tables::default()).expect("memory");
    let (own, _) = writer.finish(&Tables::default()).expect("memory");
    assert!(recording::is_ours(&own));
    let texts: [&[u8]; 10] = [
        b"fio version 3 iolog\n30 a add\n36 a trim 0 8192\n52 a write 1 4096\n60 a sync 0 0\n",
        b"start ; sector; length ; op\n 0.25 ; 8 ; 64 ; W ; 0.0 ; 0.0\n",
        b"128166372003061629,hm,1,Read,383496192,32768,113736\n",
        b"938513000 4 264719034 16 0\n938513001 4 1 16 1\n",
        b"419,W,8792731648,16384,1577808144360767\n",
        b"1538323200,12910952,128,0,1063\n1538323200,8,8,1,1063\n",
        b"1455592920.004500,0.000105,W,2,30743490560,4096\n",
        b"89966400263042 4892 syslogd 904265560 8 W 6 0 531e779\n",
        b"#ELAPSED_USECS.D,CMD.S,SEQID.I,PHASE.I,LBA.I,NBLKS.I,THINK_USECS.D\n10.5,RD_IN,7,0,800,8,0\n",
        b"time_us,op,offset,size,latency_us\n5,R,512,4096,7.5\n",
    ];
    let forms = [Form(7, false), Form(7, true), Form(8, false), Form(8, true)];
    let events = forms.map(|form| form.stream(&raws));
    let text = [blkparse(&raws, &names).into_bytes(), ftrace(&raws, &names).into_bytes(), own];
    events.into_iter().chain(text).chain(texts.map(<[u8]>::to_vec)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_damaged_trace_is_read_or_refused(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        length in prop::option::of(any::<prop::sample::Index>()),
        forced in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let all = whole();
        let mut bytes = all[which.index(all.len())].clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(length) = length {
            bytes.truncate(length.index(bytes.len()));
        }
        let formats = formats::all();
        let format = forced.map(|at| formats[at.index(formats.len())].name.to_owned());
        match try_read_files(&[&bytes], &Wanted { format, ..Wanted::default() }, Some(1000)) {
            Ok(found) => prop_assert!(found.ios.is_sorted_by_key(|io| io.queued)),
            Err(error) => prop_assert!(!error.reason.is_empty()),
        }
    }
}
