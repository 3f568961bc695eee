//! Coalescing in an engine: the frames that leave each port are the same as without coalescing,
//! once large frames are segmented again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec, Tables};
use suimon_frame::{FrameBatch, Offloads, Sum, VnetHeader, complete_checksum, segment};
use suimon_ports::{FrameSink, QueueFault, TransmitResult};
use suimon_quantity::{Direction, PortId, QueueId, SwitchId, Time, WorkerId};

use super::*;
use crate::accepted_offloads::AcceptedOffloads;
use crate::engine::Engine;
use crate::notice::Notices;
use crate::owned::OwnedSink;
use crate::published::{PortRuntime, SharedPortState};
use crate::queue_record::QueueRecord;
use crate::stage_clock::StageProbe;
use crate::worker_mailbox::{WorkerMailbox, WorkerMailboxes, WorkerMessage};

/// Port from which the frames are received.
const SENDER: u8 = 0;
/// Port that accepts large frames.
const TAKER: u8 = 1;
/// Port that accepts no large frames.
const PLAIN: u8 = 2;
/// Port that accepts large frames, owned by another worker.
const REMOTE: u8 = 3;
/// Port that accepts large frames, with receive coalescing disabled.
const REFUSER: u8 = 4;
const PORTS: u8 = 5;
const EVERYBODY: u8 = 0xff;

type Sunk = Arc<Mutex<Vec<Frame>>>;

struct MemorySink {
    offloads: Arc<AcceptedOffloads>,
    sunk: Sunk,
}

impl FrameSink for MemorySink {
    fn transmit(&mut self, frame: &Frame) -> Result<TransmitResult, QueueFault> {
        let mut copy = Frame::new(0);
        copy.copy_from(frame);
        self.sunk.lock().unwrap().push(copy);
        Ok(TransmitResult::Accepted)
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        self.offloads.get()
    }
}

/// Two workers with five ports. Frames arrive at the first worker.
struct World {
    engine: Engine,
    other: Engine,
    links: [Arc<WorkerMailbox>; 2],
    shared: Vec<Arc<SharedPortState>>,
    offloads: Vec<Arc<AcceptedOffloads>>,
    sunk: Vec<Sunk>,
}

impl World {
    fn new(receive_coalescing: bool) -> Self {
        let links = [0, 1].map(|id| Arc::new(WorkerMailbox::new(WorkerId(id), id.into())));
        let shared: Vec<_> =
            (0..PORTS).map(|id| Arc::new(SharedPortState::new(PortId(id.into())))).collect();
        // Tables with queues are published after the queues have been attached.
        let without_queues = publish(&[], receive_coalescing);
        let notices = Notices::new();
        let all_links = all_links(&links);
        let engine = |id: usize| {
            let (link, published) = (Arc::clone(&links[id]), Arc::clone(&without_queues));
            Engine::new(link, published, Arc::clone(&all_links), Arc::clone(&notices))
        };
        let (mut engine, mut other) = (engine(0), engine(1));
        let (mut sunk, mut offloads) = (Vec::new(), Vec::new());
        for id in 0..PORTS {
            let accepted = Arc::new(AcceptedOffloads::default());
            accepted.set(if id == PLAIN { Offloads::NONE } else { Offloads::TCP });
            let frames = Sunk::default();
            let sink = MemorySink { offloads: Arc::clone(&accepted), sunk: Arc::clone(&frames) };
            let shared = Arc::clone(&shared[usize::from(id)]);
            let record = QueueRecord::new(WorkerId(u16::from(id == REMOTE)));
            let sink = OwnedSink::new(queue(id), Box::new(sink), shared, &record);
            let owner = if id == REMOTE { &mut other } else { &mut engine };
            owner.attach_sink(Box::new(sink));
            sunk.push(frames);
            offloads.push(accepted);
        }
        let mut world = Self { engine, other, links, shared, offloads, sunk };
        world.set_receive_coalescing(receive_coalescing);
        for id in 0..PORTS {
            world.send_from(id, &[Order::new(EVERYBODY, 0, 10)]);
        }
        world.take();
        world
    }

    fn set_receive_coalescing(&mut self, is_on: bool) {
        let published = publish(&self.shared, is_on);
        let links = all_links(&self.links);
        self.engine.adopt_tables(Arc::clone(&published), Arc::clone(&links));
        self.other.adopt_tables(published, links);
    }

    /// Makes the sending port an uplink.
    fn set_handing_over_joined(&mut self, is_on: bool) {
        let mut published = publish(&self.shared, true);
        let new = Arc::get_mut(&mut published).unwrap();
        let slot = new.forwarding_tables.slot(PortId(SENDER.into())).unwrap().index();
        (new.ports[slot].is_uplink, new.ports[slot].forwards_coalesced) = (true, is_on);
        let links = all_links(&self.links);
        self.engine.adopt_tables(Arc::clone(&published), Arc::clone(&links));
        self.other.adopt_tables(published, links);
    }

    fn send(&mut self, orders: &[Order]) {
        self.send_from(SENDER, orders);
    }

    fn send_from(&mut self, from: u8, orders: &[Order]) {
        let mut batch = FrameBatch::new();
        let mut sent = BTreeMap::new();
        for order in orders {
            let frame = batch.next_free_frame().expect("room in the batch");
            order.write(from, sent.entry((order.to, order.flow)).or_default(), frame);
            batch.commit();
        }
        let ingress = self.engine.published().ingress(PortId(from.into())).unwrap();
        self.engine.handle_batch(Time::ZERO, ingress, &mut batch, &mut StageProbe::none());
        self.engine.flush();
        while let Some(message) = self.links[1].poll_message() {
            match message {
                WorkerMessage::FrameMessage(frame_message) => {
                    self.other.handle_frame_message(frame_message, &mut StageProbe::none());
                }
                WorkerMessage::AddressSighting(learned) => {
                    self.other.handle_address_sighting(Time::ZERO, learned);
                }
                _ => panic!("message of a move"),
            }
        }
        self.other.flush();
    }

    /// Returns the frames that left each port since the last call, by port number.
    fn take(&mut self) -> Vec<Vec<Frame>> {
        self.sunk.iter().map(|sunk| std::mem::take(&mut *sunk.lock().unwrap())).collect()
    }

    fn coalesced(&self, port: u8) -> (u64, u64) {
        let tally = &self.shared[usize::from(port)].counters;
        (tally.coalesced_segments.value(), tally.coalesced_frames.value())
    }
}

fn queue(id: u8) -> QueueId {
    QueueId { port: PortId(id.into()), direction: Direction::Egress, index: 0 }
}

fn all_links(links: &[Arc<WorkerMailbox>; 2]) -> Arc<WorkerMailboxes> {
    Arc::new(links.iter().cloned().map(Some).collect())
}

fn publish(shared: &[Arc<SharedPortState>], receive_coalescing: bool) -> Arc<PublishedTables> {
    let ids = 0..shared.len() as u8;
    let spec = |id: u8| ForwardingPortSpec::new(PortId(id.into()), SwitchId(1), PortRole::Nic);
    let specs: Vec<_> = ids.clone().map(spec).collect();
    let tables = Tables::build(&[SwitchSpec::new(SwitchId(1))], &specs).unwrap();
    let owner = |id: u8| WorkerId(u16::from(id == REMOTE));
    let owners = ids.clone().map(|id| (queue(id), owner(id))).collect();
    let mut ports: Vec<_> = ids
        .map(|id| {
            let slot = tables.slot(PortId(id.into())).unwrap().index();
            let runtime = PortRuntime {
                shared: Arc::clone(&shared[usize::from(id)]),
                bandwidth_limit: None,
                storm_limit: None,
                receive_coalescing: receive_coalescing && id != REFUSER,
                forwards_coalesced: true,
                is_uplink: false,
                binds_source: false,
                capture: None,
                egress_queues: usize::from(id)..usize::from(id) + 1,
                team_index: None,
            };
            (slot, runtime)
        })
        .collect();
    ports.sort_by_key(|(slot, _)| *slot);
    Arc::new(PublishedTables {
        forwarding_tables: Arc::new(tables),
        ports: ports.into_iter().map(|(_, runtime)| runtime).collect(),
        members: Vec::new(),
        teams: Vec::new(),
        owners,
    })
}

/// Description of one frame of a TCP stream.
#[derive(Clone, Debug)]
struct Order {
    to: u8,
    flow: u8,
    payload_bytes: usize,
    pushes: bool,
    /// True for a frame that stands for segments of 1000 bytes.
    is_large: bool,
}

impl Order {
    fn new(to: u8, flow: u8, payload_bytes: usize) -> Self {
        Self { to, flow, payload_bytes, pushes: false, is_large: false }
    }

    fn write(&self, from: u8, sent: &mut (u32, u16), frame: &mut Frame) {
        let mut bytes = vec![0xff; 6];
        if self.to != EVERYBODY {
            bytes = vec![2, 0, 0, 0, 0, self.to];
        }
        bytes.extend([2, 0, 0, 0, 0, from, 0x08, 0x00, 0x45, 0]);
        bytes.extend((40 + self.payload_bytes as u16).to_be_bytes());
        bytes.extend(sent.1.to_be_bytes());
        bytes.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, self.to]);
        let checksum = Sum::from_bytes(&bytes[14..]).checksum();
        bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
        bytes.extend([0x10, self.flow, 0, 80]);
        bytes.extend(sent.0.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0x50, if self.pushes { 0x18 } else { 0x10 }, 0xff, 0xff]);
        let transport_bytes = 20 + self.payload_bytes as u16;
        let addresses = [[10, 0, 0, from], [10, 0, 0, self.to]];
        let pseudo = Sum::pseudo_ipv4(addresses[0], addresses[1], 6, transport_bytes);
        bytes.extend(pseudo.word().to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend((0..self.payload_bytes).map(|index| (index as u32 + sent.0) as u8));
        let segments = if self.is_large { self.payload_bytes.div_ceil(1000) as u16 } else { 1 };
        *sent = (sent.0 + self.payload_bytes as u32, sent.1 + segments);
        frame.set_bytes(&bytes);
        let header = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: if self.is_large { VnetHeader::GSO_TCPV4 } else { VnetHeader::GSO_NONE },
            gso_size: if self.is_large { 1000 } else { 0 },
            csum_start: 34,
            csum_offset: 16,
            ..VnetHeader::default()
        };
        frame.validate_ingress(&header, Offloads::TCP).unwrap();
    }
}

/// Returns the segments that a wire would carry for these frames, by the TCP source port of the
/// stream.
fn streams(frames: Vec<Frame>) -> BTreeMap<u8, Vec<Vec<u8>>> {
    let mut streams: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
    for mut frame in frames {
        let stream = streams.entry(frame.bytes()[35]).or_default();
        if frame.meta.gso.is_none() {
            complete_checksum(&mut frame);
            stream.push(frame.bytes().to_vec());
            continue;
        }
        let mut segments = segment(&mut frame, false).unwrap();
        while let Some(segment) = segments.next_segment() {
            stream.push(segment.bytes().to_vec());
        }
    }
    streams
}

fn bytes_of(frames: &[Frame]) -> Vec<Vec<u8>> {
    frames.iter().map(|frame| frame.bytes().to_vec()).collect()
}

fn orders() -> impl Strategy<Value = Vec<Order>> {
    let to = prop_oneof![8 => TAKER..PORTS, 1 => Just(EVERYBODY)];
    let payload_bytes = prop_oneof![8 => Just(1000), 1 => Just(0), 1 => 1_usize..1460];
    let order = (to, 0_u8..2, payload_bytes, prop::bool::weighted(0.1));
    let order = order.prop_map(|(to, flow, payload_bytes, pushes)| Order {
        pushes,
        ..Order::new(to, flow, payload_bytes)
    });
    prop::collection::vec(order, 1..=32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_port_receives_the_same_frames_as_without_coalescing(
        batches in prop::collection::vec(orders(), 1..3),
    ) {
        let (mut with, mut without) = (World::new(true), World::new(false));
        for orders in &batches {
            with.send(orders);
            without.send(orders);
        }
        let (actual, expected) = (with.take(), without.take());
        for (id, (frames, expected)) in (0..PORTS).zip(actual.into_iter().zip(expected)) {
            let (segments, units) = with.coalesced(id);
            let absorbed = (segments - units) as usize;
            prop_assert_eq!(frames.len() + absorbed, expected.len(), "port {}", id);
            prop_assert_eq!(without.coalesced(id), (0, 0));
            let joined = frames.iter().filter(|frame| frame.meta.is_coalesced).count();
            prop_assert_eq!(joined as u64, units);
            if id == PLAIN || id == REFUSER {
                prop_assert_eq!(bytes_of(&frames), bytes_of(&expected), "port {}", id);
            }
            prop_assert_eq!(streams(frames), streams(expected), "port {}", id);
        }
    }
}

#[test]
fn a_stream_becomes_one_frame_if_coalescing_is_enabled() {
    let mut world = World::new(true);
    let send_to_each = |world: &mut World| {
        for to in TAKER..PORTS {
            world.send(&vec![Order::new(to, 0, 1000); 32]);
        }
        world.take()[usize::from(TAKER)..].iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(send_to_each(&mut world), [1, 32, 1, 32]);
    let counts: Vec<_> = (TAKER..PORTS).map(|id| world.coalesced(id)).collect();
    assert_eq!(counts, [(32, 1), (0, 0), (32, 1), (0, 0)]);
    world.set_receive_coalescing(false);
    assert_eq!(send_to_each(&mut world), [32; 4], "the switch is off");
    world.set_receive_coalescing(true);
    world.offloads[usize::from(TAKER)].set(Offloads::TCP.without_segmentation());
    assert_eq!(
        send_to_each(&mut world),
        [32, 32, 1, 32],
        "segmented again by the owner of the egress queue"
    );
    assert_eq!(world.shared[usize::from(TAKER)].counters.software_segmented.value(), 1);
    assert_eq!(send_to_each(&mut world), [32, 32, 1, 32]);
    assert_eq!(
        world.shared[usize::from(TAKER)].counters.software_segmented.value(),
        1,
        "known now"
    );
    world.offloads[usize::from(TAKER)].set(Offloads::TCP);
    send_to_each(&mut world);
    assert_eq!(send_to_each(&mut world), [1, 32, 1, 32], "it takes them again");
}

/// Streams to several ports in one batch: each port counts its own segments.
#[test]
fn ports_count_their_own() {
    let mut world = World::new(true);
    let orders: Vec<_> =
        (0..30).map(|index| Order::new([TAKER, REMOTE][index % 2], 0, 1000)).collect();
    world.send(&orders);
    assert_eq!((world.coalesced(TAKER), world.coalesced(REMOTE)), ((15, 1), (15, 1)));
    let orders: Vec<_> = (0..30).map(|index| Order::new(TAKER, index % 3, 1000)).collect();
    world.send(&orders);
    assert_eq!(world.coalesced(TAKER), (45, 4));
    let lengths: Vec<_> = world.take()[usize::from(TAKER)].iter().map(Frame::len).collect();
    assert_eq!(lengths, [15_054, 10_054, 10_054, 10_054]);
}

/// Coalesced frames are forwarded only if receive coalescing is enabled on the uplink that received
/// them and on the receiving port.
#[test]
fn an_uplink_may_forward_segments_only() {
    let mut received = World::new(true);
    let large = Order { is_large: true, ..Order::new(TAKER, 1, 3000) };
    let mut orders = vec![Order::new(TAKER, 0, 1000); 8];
    orders.extend([large.clone(), Order { to: REMOTE, ..large }]);
    let mut lengths = |is_on| {
        received.set_handing_over_joined(is_on);
        received.send(&orders);
        let remaining_frames = received.take();
        [TAKER, REMOTE].map(|port| {
            let frames = remaining_frames[usize::from(port)].iter();
            frames.map(|frame| (frame.len(), frame.meta.gso.is_some())).collect::<Vec<_>>()
        })
    };
    assert_eq!(lengths(true), [vec![(8054, true), (3054, true)], vec![(3054, true)]]);
    assert_eq!(lengths(false), [vec![(1054, false); 11], vec![(1054, false); 3]]);
    assert_eq!(received.coalesced(TAKER), (8, 1));
    assert_eq!(received.shared[usize::from(REMOTE)].counters.software_segmented.value(), 1);
}
