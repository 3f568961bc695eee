//! What a request costs a processor with one disk and with many, on files that take no time.
//! 128 requests are outstanding in all, or one of each busy disk if those are more.
//!
//! How many requests end between two turns of the processor decides about what its looks at
//! the queues cost: a device that ends 16 has it look at 1000 queues for 16 requests. The
//! longer a turn takes, the more have ended in it, so the truth lies between 16 and all.

use anyhow::Result;
use suimon_disk_tests::{EngineLoad, HeldTo};

use crate::disk_qos::{ENDS, engine_pair};
use crate::report::Work;

/// Disks in all and busy ones.
const SIZES: [[u32; 2]; 4] = [[10, 10], [100, 100], [1000, 1000], [1000, 1]];

/// A kind of load, with its name and words.
struct Kind {
    name: &'static str,
    held_to: HeldTo,
    ends: usize,
    words: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "all-end",
        held_to: HeldTo::NoStore,
        ends: usize::MAX,
        words: "all requests end in a turn",
    },
    Kind {
        name: "16-end",
        held_to: HeldTo::NoStore,
        ends: ENDS,
        words: "16 requests end in a turn",
    },
    Kind {
        name: "limits-16-end",
        held_to: HeldTo::AllLimits,
        ends: ENDS,
        words: "limits, 16 requests end in a turn",
    },
];

/// Runs `pairs` pairs of each. The peer is Suimon with one disk.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut works = Vec::new();
    for Kind { name, held_to, ends, words } in KINDS {
        for [disks, busy] in SIZES {
            let load = |[disks, busy]: [u32; 2]| EngineLoad { disks, busy, ends, held_to };
            let name = format!("disks-many-{name}-{disks}-{busy}");
            let title = format!(
                "A request's way through the engine, {disks} disks on one processor, {busy} of \
                 them busy, {words}"
            );
            let mut work = Work::new(&name, &title, "Suimon, one disk", "ns").less_is_better();
            for _ in 0..pairs {
                work.push(engine_pair(&load([1, 1]), &load([disks, busy]))?);
            }
            works.push(work);
        }
    }
    Ok(works)
}
