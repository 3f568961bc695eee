//! Benchmark of the cost of a frame in the switch beside other workers: one and two busy workers
//! with tables in common, and a worker that reads no mail, with and without room in its mailbox.
//!
//! `cargo run --release -p suimon-processor-tests --example neighbour_cost`

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use suimon_processor_tests::{ns_per_frame_beside_full_mailbox, ns_per_frame_of_workers};
use suimon_test_programs::end_program;

const WINDOW: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    end_program("neighbour_cost", measure_all())
}

fn measure_all() -> Result<()> {
    for batch_frames in [1, 32] {
        for workers in [1, 2] {
            let ns = ns_per_frame_of_workers(workers, batch_frames, WINDOW)?;
            println!("{workers} busy workers, batches of {batch_frames}: {ns:.2} ns a frame");
        }
    }
    for senders in [3, 15] {
        let ns = ns_per_frame_beside_full_mailbox(senders, WINDOW)?;
        println!("{senders} senders beside a worker that reads no mail: {ns:.2} ns a frame");
    }
    Ok(())
}
