use std::sync::atomic::{AtomicUsize, Ordering};

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec, Tables};
use suimon_frame::Offloads;
use suimon_ports::{FrameSink, QueueFault, TransmitResult};
use suimon_quantity::{PortId, SwitchId, WorkerId};

use super::*;
use crate::owned::OwnedSink;
use crate::published::SharedPortState;
use crate::queue_record::QueueRecord;

/// Sink that records the number of references to the tables while it accepts a frame.
struct Counting {
    published: Arc<PublishedTables>,
    references: Arc<AtomicUsize>,
}

impl FrameSink for Counting {
    fn transmit(&mut self, _: &Frame) -> Result<TransmitResult, QueueFault> {
        self.references.store(Arc::strong_count(&self.published), Ordering::Relaxed);
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::NONE
    }
}

/// Returns tables of two ports; port 1 has an egress queue if `has_queue`.
fn tables(has_queue: bool) -> Arc<PublishedTables> {
    let spec = |id| ForwardingPortSpec::new(PortId(id), SwitchId(1), PortRole::Nic);
    let tables = Tables::build(&[SwitchSpec::new(SwitchId(1))], &[spec(0), spec(1)]).unwrap();
    let port = |id: u32| PortRuntime {
        shared: Arc::new(SharedPortState::new(PortId(id))),
        bandwidth_limit: None,
        storm_limit: None,
        receive_coalescing: true,
        forwards_coalesced: true,
        is_uplink: false,
        binds_source: false,
        capture: None,
        egress_queues: if id == 1 && has_queue { 0..1 } else { 0..0 },
        team_index: None,
    };
    let mut ports: Vec<PortRuntime> = [0, 1].map(port).into();
    ports.sort_by_key(|port| tables.slot(port.shared.id).map(|slot| slot.index()));
    let queue = QueueId { port: PortId(1), direction: Direction::Egress, index: 0 };
    Arc::new(PublishedTables {
        forwarding_tables: Arc::new(tables),
        ports,
        members: Vec::new(),
        teams: Vec::new(),
        owners: if has_queue { vec![(queue, WorkerId(0))] } else { Vec::new() },
    })
}

#[test]
fn a_batch_does_not_change_the_reference_count_of_the_shared_tables() {
    let link = Arc::new(WorkerMailbox::new(WorkerId(0), 0.into()));
    let published = tables(true);
    let links: Arc<WorkerMailboxes> = Arc::new([Some(Arc::clone(&link))].into_iter().collect());
    // Tables with the queue are adopted after it has been attached.
    let mut engine = Engine::new(link, tables(false), Arc::clone(&links), Notices::new());
    let references = Arc::new(AtomicUsize::new(0));
    let sink = Counting { published: Arc::clone(&published), references: Arc::clone(&references) };
    let (queue, owner) = published.owners[0];
    let shared = Arc::clone(&published.port(queue.port).unwrap().shared);
    let record = QueueRecord::new(owner);
    engine.attach_sink(Box::new(OwnedSink::new(queue, Box::new(sink), shared, &record)));
    engine.adopt_tables(Arc::clone(&published), links);
    let mut batch = FrameBatch::new();
    let frame = batch.next_free_frame().unwrap();
    frame.space_mut()[..14]
        .copy_from_slice(&[0xff, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 0]);
    frame.set_len(60);
    batch.commit();
    let ingress = published.ingress(PortId(0)).unwrap();
    let before = Arc::strong_count(&published);
    engine.handle_batch(Time::ZERO, ingress, &mut batch, &mut StageProbe::none());
    assert_eq!(references.load(Ordering::Relaxed), before);
}
