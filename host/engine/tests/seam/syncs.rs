//! How often a copy is put on stable storage that need not be.

use copyist_engine::{Durability, Errno};

use crate::bench::{Bench, Shape, Start, drive};
use crate::scheduled::{Op, Outcome, When};

const COPIERS: [Op; 3] = [Op::Clone, Op::CopyRange, Op::SendFile];

/// What makes a copy go on by the next mechanism.
const REFUSALS: [Errno; 6] = [
    Errno::IO,
    Errno::PERM,
    Errno::NOSYS,
    Errno::OPNOTSUPP,
    Errno::XDEV,
    Errno::INVAL,
];

#[test]
fn without_durability_nothing_is_synced_but_what_followed_an_eio() {
    let bench = Bench::new();
    for start in Start::ALL {
        for shape in Shape::ALL {
            let syncs = |refused: Option<(Op, When, Errno)>| {
                let mut sys = start.system();
                if let Some((op, when, errno)) = refused {
                    sys = sys.rule(op, when, Outcome::Fail(errno));
                }
                let sys = sys.shared();
                let request = bench.prepare(shape, start);
                assert_eq!(request.options.durability, Durability::None);
                drive(&sys.environment(), request).unwrap();
                let saw = |op| {
                    let calls = sys.calls_of(op);
                    calls.iter().any(|call| call.answer == Err(Errno::IO))
                };
                (sys.calls_of(Op::Sync).len(), COPIERS.into_iter().any(saw))
            };
            assert_eq!(syncs(None), (0, false), "{start:?} {shape:?}");
            for op in COPIERS {
                for when in [When::Nth(1), When::Nth(2), When::From(1)] {
                    for errno in REFUSALS {
                        let (count, saw_eio) = syncs(Some((op, when, errno)));
                        // Once, whatever else followed.
                        assert_eq!(
                            count,
                            usize::from(saw_eio),
                            "{start:?} {shape:?} {op:?} {when:?} {errno:?}"
                        );
                    }
                }
            }
        }
    }
}
