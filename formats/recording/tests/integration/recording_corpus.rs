//! Checks the decoding of recorded blocks, unmodified and corrupted, with the fuzz target's oracle.

use std::sync::{Arc, Mutex};

use crate::recording_oracle::check;
use proptest::prelude::*;
use suimon_cluster_qos::{DurableState, Member, MemberEvent, NodeId, Parameters};
use suimon_quantity::{DiskId, Time};
use suimon_recording::{
    MemberInitialState, RecordSink, Recorded, StoreInput, StreamId, decode_store_input,
};
use suimon_storage_qos::{
    Capacity, CompletedRequests, DiskSlot, IoKind, Limits, LimitsSource, Proposal, Store,
    StoreScheduler, StoreSpec,
};

#[derive(Default)]
struct Bodies(Mutex<Vec<u8>>);

impl RecordSink for Bodies {
    fn allocate_stream_id(&self) -> StreamId {
        StreamId(self.0.lock().unwrap().len() as u32 + 1)
    }

    fn accept_block(&self, _stream: StreamId, body: Vec<u8>) -> bool {
        self.0.lock().unwrap().extend(body);
        true
    }
}

/// Returns a block body that contains the records of a scheduler and of a cluster member.
fn body() -> Vec<u8> {
    let bodies = Arc::new(Bodies::default());
    let sink: Arc<dyn RecordSink> = bodies.clone();
    let time_at = |ms: u64| Time::from_ns(ms * 1_000_000);
    let spec = StoreSpec { waiting_max: 100, ..StoreSpec::default() };
    let mut scheduler =
        Recorded::<StoreScheduler>::record_scheduler(Some(&sink), (time_at(0), "s"), spec);
    let mut store = Store::new(Capacity::Declared(1000));
    let proposal = Proposal::SetDisk(DiskId(1), LimitsSource::Own(Limits::default()));
    store.apply(&[proposal], false).unwrap();
    for change in store.config_steps() {
        scheduler.apply(time_at(0), change);
    }
    for ms in 1..20 {
        scheduler.submit(time_at(ms), DiskSlot(0), 4096, 7).unwrap();
        scheduler.poll(time_at(ms));
        let (operation, latency_ns) = (IoKind::Write, Some(80_000));
        let completed =
            CompletedRequests { operation, bytes: 4096, requests: 1, latency_sum_ns: latency_ns };
        scheduler.handle_completed_requests(time_at(ms), DiskSlot(0), completed);
    }
    scheduler.observe(time_at(20));
    let (terms, keeps) = (Parameters::default(), DurableState::default());
    let birth =
        MemberInitialState { parameters: terms, node: NodeId(1), incarnation: 1, durable: keeps };
    let (mut member, _) = Recorded::<Member>::record_member(Some(&sink), (time_at(0), "s"), birth);
    member.handle(time_at(30), MemberEvent::Loads { disks: Vec::new(), latency_ns: 0 });
    member.flush();
    bodies.0.lock().unwrap().clone()
}

#[test]
fn recordings_are_decoded_completely() {
    let outcome = check(&body());
    assert_eq!((outcome.begun, outcome.refused), (2, false), "{outcome:?}");
    assert!(outcome.steps > 60, "{outcome:?}");
}

proptest! {
    #[test]
    fn corrupted_recordings_keep_the_invariants(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut body = body();
        for (position, byte) in changes {
            let index = position.index(body.len());
            body[index] = byte;
        }
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len()));
        }
        check(&body);
    }

    #[test]
    fn arbitrary_bytes_keep_the_invariants(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes);
    }
}

#[test]
fn an_undone_request_is_recorded_with_slot_and_bytes() {
    let input = decode_store_input(&[10, 1, 8]).unwrap();
    assert_eq!(input, StoreInput::NotExecuted { slot: DiskSlot(1), bytes: 8 });
}

/// A recorded completion contains its operation; an unknown operation is an error.
#[test]
fn a_completion_has_its_operation() {
    for (number, operation) in (0u8..).zip(IoKind::ALL) {
        let input = decode_store_input(&[3, 1, number, 8, 2, 101]).unwrap();
        let completed =
            CompletedRequests { operation, bytes: 8, requests: 2, latency_sum_ns: Some(100) };
        assert_eq!(input, StoreInput::Completed { slot: DiskSlot(1), requests: completed });
    }
    let error = decode_store_input(&[3, 1, 4, 8, 2, 101]).unwrap_err();
    assert!(error.to_string().contains("unknown operation 4"), "{error}");
}
