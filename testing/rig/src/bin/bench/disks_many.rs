//! What a request costs a processor with one disk and with many, on files that take no time.
//! 128 requests are outstanding in all, or one of each busy disk if those are more.

use anyhow::Result;
use suimon_disk_tests::HeldTo;

use crate::disk_qos::engine;
use crate::report::{Pair, Work};

/// Disks in all and busy ones.
const SIZES: [[u32; 2]; 4] = [[10, 10], [100, 100], [1000, 1000], [1000, 1]];
const HELD_TO: [(HeldTo, &str, &str); 2] =
    [(HeldTo::NoStore, "free", ""), (HeldTo::AllLimits, "limited", " with limits")];

/// Runs `pairs` pairs of each. The peer is Suimon with one disk.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut works = Vec::new();
    for (held_to, name, words) in HELD_TO {
        for [disks, busy] in SIZES {
            let name = format!("disks-many-{name}-{disks}-{busy}");
            let title = format!(
                "A request's way through the engine, {disks} disks{words} on one processor, \
                 {busy} of them busy"
            );
            let peer = format!("Suimon, one disk{words}");
            let mut work = Work::new(&name, &title, &peer, "ns").less_is_better();
            for _ in 0..pairs {
                let peer = engine([1, 1], held_to)?;
                work.push(Pair { peer, suimon: engine([disks, busy], held_to)? });
            }
            works.push(work);
        }
    }
    Ok(works)
}
