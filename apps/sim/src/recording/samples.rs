//! Recordings of policies with random inputs, for tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, DiskKey, DiskLoad, DurableState, Member,
    MemberAction, MemberEvent, NodeId, Parameters, SharedStoreCapacity, Term,
};
use suimon_quantity::{Direction, DiskId, Iops, PortId, QueueId, Time, WorkerId};
use suimon_recording::{
    MemberInitialState, RecordSink, Recorded, RecordingSource, StreamId, encode_block,
    encode_origin, file_header,
};
use suimon_sim_kernel::{RandomStream, SECOND_NS};
use suimon_storage_qos::{
    Borrower, Capacity as Declared, CompletedRequests, Completion, DiskSlot, IoKind, Limits,
    LimitsSource, NextAction, Normalization, Proposal, Store, StoreScheduler, StoreSpec,
    SubmitOutcome,
};
use suimon_teaming::lacp::{Activity, Lacp, LacpAction, LacpPortSpec, LacpSpec, Link, Timer};
use suimon_teaming::{
    Algorithm, BUCKETS, BucketLoad, MemberId, MemberLink, MemberSpec, Team, TeamId, TeamMode,
    TeamPort, TeamSpec,
};
use suimon_vmq::{Measurements, NicSpec, QueueBusy, Vmq, VmqSpec, WorkerBusy, WorkerSpec};

/// Sink that stores the bodies of blocks in memory.
#[derive(Default)]
pub(super) struct Bodies {
    streams: Mutex<u32>,
    bodies: Mutex<Vec<Vec<u8>>>,
}

impl RecordSink for Bodies {
    fn allocate_stream_id(&self) -> StreamId {
        let mut streams = self.streams.lock().unwrap();
        *streams += 1;
        StreamId(*streams)
    }

    fn accept_block(&self, _stream: StreamId, body: Vec<u8>) -> bool {
        self.bodies.lock().unwrap().push(body);
        true
    }
}

pub(super) fn recording_sink() -> (Arc<Bodies>, Arc<dyn RecordSink>) {
    let bodies = Arc::new(Bodies::default());
    (bodies.clone(), bodies)
}

impl Bodies {
    /// Returns the bodies of all blocks.
    pub(super) fn bodies(&self) -> Vec<Vec<u8>> {
        let source =
            encode_origin(&RecordingSource { host: "h".to_owned(), ..RecordingSource::default() });
        [source].into_iter().chain(self.bodies.lock().unwrap().clone()).collect()
    }

    pub(super) fn file(&self) -> Vec<u8> {
        file(&self.bodies())
    }
}

pub(super) fn file(bodies: &[Vec<u8>]) -> Vec<u8> {
    let blocks = bodies.iter().flat_map(|body| encode_block(body));
    file_header().into_iter().chain(blocks).collect()
}

fn team_spec(algorithm: Algorithm) -> TeamSpec {
    let member = |number: u8| MemberSpec {
        id: MemberId(u32::from(number)),
        mac: suimon_frame::MacAddr::new([2, 0, 0, 0, 1, number]),
    };
    let members = [member(1), member(2)];
    TeamSpec::new(TeamId(9), TeamMode::SwitchIndependent, algorithm, &members)
}

/// Records a team with few uneven flows and a link that fails repeatedly.
fn team(sink: &Arc<dyn RecordSink>, algorithm: Algorithm, seconds: u64) {
    let mut random = RandomStream::new(7, "team");
    let time = |second: u64| Time::from_ns(SECOND_NS * (100 + second));
    let origin = (time(0), "both");
    let mut team = Recorded::<Team>::record_team(Some(sink), origin, team_spec(algorithm)).unwrap();
    let link = |up| MemberLink { up, speed_mbps: 10_000, ..MemberLink::default() };
    let _ = team.set_ports(time(0), &[TeamPort { id: PortId(4), mac: None }]);
    for member in [1, 2] {
        let _ = team.handle_member_link(time(0), MemberId(member), link(true)).unwrap();
    }
    assert!(team.handle_member_link(time(0), MemberId(77), link(true)).is_err());
    let flows: Vec<(usize, u64)> = (0..40)
        .map(|_| (random.draw_below(BUCKETS as u64) as usize, random.draw_in_range(1, 400) << 16))
        .collect();
    for second in 1..=seconds {
        if random.draw_chance(3) {
            for up in [false, true] {
                let _ = team.handle_member_link(time(second), MemberId(1), link(up)).unwrap();
            }
        }
        let mut loads = Box::new([BucketLoad::default(); BUCKETS]);
        for (bucket, bytes) in &flows {
            loads[*bucket].bytes += bytes;
        }
        let _ = team.handle_loads(time(second), &loads);
        team.flush();
    }
}

/// Records a team that exchanges LACPDUs with another one over two links. One link fails
/// repeatedly, and some frames are damaged.
fn lacp(sink: &Arc<dyn RecordSink>, seconds: u64) {
    let mut random = RandomStream::new(7, "lacp");
    let time = |step: u64| Time::from_ns(SECOND_NS * 500 + SECOND_NS / 10 * step);
    let mac = |system: u8, port: u8| suimon_frame::MacAddr::new([2, 0, 0, system, 2, port]);
    let spec = |system: u8| LacpSpec {
        system: mac(system, 0),
        system_priority: 1,
        admin_key: 7,
        activity: Activity::Active,
        timer: Timer::Fast,
        individual_allowed: false,
        max_active: 2,
        mixed_speeds_allowed: false,
    };
    let mut local = Recorded::<Lacp>::record_lacp(Some(sink), (time(0), "both"), spec(1)).unwrap();
    let mut remote = Lacp::new(spec(2)).unwrap();
    let link = Some(Link { speed_mbps: 10_000, full_duplex: true });
    for number in [1_u8, 2] {
        let member = MemberId(u32::from(number));
        let port =
            |system| LacpPortSpec { port: number.into(), priority: 1, mac: mac(system, number) };
        local.add_member(time(0), member, port(1)).unwrap();
        remote.add_member(member, port(2), time(0)).unwrap();
        local.handle_link(time(0), member, link).unwrap();
        remote.handle_link(member, link, time(0)).unwrap();
    }
    assert!(local.handle_link(time(0), MemberId(77), link).is_err());
    for step in 1..=10 * seconds {
        if random.draw_chance(2) {
            local
                .handle_link(time(step), MemberId(1), link.filter(|_| random.draw_chance(50)))
                .unwrap();
        }
        let mut actions = Vec::new();
        remote.poll(time(step), &mut actions);
        for action in actions {
            let LacpAction::Send { member, frame } = action else { continue };
            let mut bytes = frame.bytes().to_vec();
            if random.draw_chance(5) {
                bytes.truncate(random.draw_below(bytes.len() as u64) as usize);
            }
            let _ = local.handle_frame(time(step), member, &bytes);
        }
        let mut actions = Vec::new();
        local.poll(time(step), &mut actions);
        for action in actions {
            let LacpAction::Send { member, frame } = action else { continue };
            let _ = remote.handle_frame(member, frame.bytes(), time(step));
        }
        local.flush();
    }
    local.set_spec(time(10 * seconds), spec(3)).unwrap();
    local.remove_member(time(10 * seconds), MemberId(2)).unwrap();
    local.poll(time(10 * seconds), &mut Vec::new());
    local.flush();
}

/// Records four queues on four workers with varying loads.
fn vmq(sink: &Arc<dyn RecordSink>, periods: u64) {
    let mut random = RandomStream::new(7, "vmq");
    let period = Duration::from_millis(250);
    let processors: Vec<WorkerSpec> = (0..4)
        .map(|number| WorkerSpec {
            number: WorkerId(number),
            core: u32::from(number),
            numa_node: 0,
        })
        .collect();
    let time = |round: u64| Time::from_ns(SECOND_NS / 4 * (400 + round));
    let spec = VmqSpec { max_workers: 4, ..VmqSpec::default() };
    let mut vmq =
        Recorded::<Vmq>::record_vmq(Some(sink), (time(0), "wan"), spec, &processors).unwrap();
    let queue = |port| QueueId { port: PortId(port), direction: Direction::Ingress, index: 0 };
    for port in 0..4 {
        vmq.set_nic(PortId(port), NicSpec::default(), 1, time(0)).unwrap();
        let added = vmq.add_queue(queue(port), time(0)).unwrap();
        vmq.handle_moved_externally(queue(port), added.worker, time(0));
    }
    let mut busy = [0_u64; 4];
    for round in 1..=periods {
        if round % 40 == 1 {
            busy = busy.map(|_| random.draw_below(240_000_000));
        }
        let placement: Vec<(QueueId, WorkerId)> = vmq.placement().collect();
        let queues =
            (0..4).map(|number| QueueBusy { queue: queue(number), busy_ns: busy[number as usize] });
        let busy_on = |worker: WorkerId| -> u64 {
            let queues_of_worker = placement.iter().filter(|(_, owner)| *owner == worker);
            queues_of_worker.map(|(queue, _)| busy[queue.port.0 as usize]).sum()
        };
        let processors = processors.iter().map(|worker_spec| WorkerBusy {
            worker: worker_spec.number,
            busy_ns: (busy_on(worker_spec.number) + 5_000_000).min(250_000_000),
        });
        let (queues, processors) = (queues.collect(), processors.collect());
        let observed =
            vmq.observe(&Measurements { period, queues, workers: processors }, time(round));
        for queue_move in observed.moves {
            vmq.handle_moved(
                queue_move.queue,
                if random.draw_chance(90) { queue_move.to } else { queue_move.from },
                time(round),
            );
        }
        vmq.flush();
    }
}

/// Records a node that is the only user and leader of a store.
fn cluster(sink: &Arc<dyn RecordSink>, turns: u64) {
    let mut random = RandomStream::new(7, "cluster");
    let time = |round: u64| Time::from_ns(SECOND_NS * 300 + SECOND_NS / 4 * round);
    let (node, terms) = (NodeId(3), Parameters::default());
    let initial_state = MemberInitialState {
        parameters: terms,
        node,
        incarnation: 2,
        durable: DurableState::default(),
    };
    let (mut member, mut actions) =
        Recorded::<Member>::record_member(Some(sink), (time(0), "san"), initial_state);
    let mut leader = Recorded::<Allocator>::record_allocator(Some(sink), (time(0), "san"), terms);
    let (capability, records) = (SharedStoreCapacity::Declared(10_000), Vec::new());
    let event = AllocatorEvent::Elected {
        term: Term(5),
        capacity: capability,
        records,
        policies: Vec::new(),
    };
    let mut to_write = leader.handle(time(0), event);
    for round in 1..=turns {
        let now = time(round);
        let demanded = random.draw_below(6000);
        let load = DiskLoad {
            disk: DiskKey(1),
            policy: None,
            min_iops: if random.draw_chance(50) { 0 } else { 2000 },
            max_iops: None,
            fallback_iops: None,
            weight: 100,
            demand_iops: demanded,
            delivered_iops: demanded / 2,
            waits_for_grant: random.draw_chance(30),
            waits_for_store: false,
            is_fully_utilised: false,
        };
        actions.extend(member.handle(now, MemberEvent::Loads { disks: vec![load], latency_ns: 1 }));
        for action in actions.drain(..) {
            if let MemberAction::Send { report } = action {
                to_write.extend(leader.handle(now, AllocatorEvent::Reported { report }));
            }
        }
        to_write.extend(leader.handle_deadline(now));
        for action in std::mem::take(&mut to_write) {
            let AllocatorAction::Write { grants, .. } = action else { continue };
            to_write.extend(leader.handle(now, AllocatorEvent::GrantsWritten));
            for (_, grant) in grants {
                actions.extend(member.handle(now, MemberEvent::Granted { grant }));
            }
        }
        actions.extend(member.handle_deadline(now));
    }
    member.flush();
    leader.flush();
}

/// Returns a write of 8 KiB that completed after `latency_ns`.
const fn completed_write(latency_ns: Option<u64>) -> CompletedRequests {
    CompletedRequests {
        operation: IoKind::Write,
        bytes: 8192,
        requests: 1,
        latency_sum_ns: latency_ns,
    }
}

/// Runs two disks with limits on a device with a service time of 1 ms and eight requests in flight.
/// Each disk keeps its queue full. Returns the time of the end.
fn disks(scheduler: &mut Recorded<StoreScheduler>, start: Time, ms: u64) -> Time {
    let slots = [DiskSlot(0), DiskSlot(1)];
    let mut ends: Vec<(Time, DiskSlot)> = Vec::new();
    let mut outstanding = [0_u32; 2];
    let mut now = start;
    for step in 0..ms * 4 {
        now = now + Duration::from_micros(250);
        let (completed, pending): (Vec<_>, Vec<_>) =
            ends.into_iter().partition(|(end_time, _)| *end_time <= now);
        ends = pending;
        for (_, slot) in &completed {
            outstanding[slot.0 as usize] -= 1;
            scheduler.handle_completed_requests(now, *slot, completed_write(Some(1_000_000)));
        }
        for slot in slots {
            let available = 8 - outstanding[slot.0 as usize];
            outstanding[slot.0 as usize] += available;
            let dispatched = if available > 1 {
                let sizes = vec![8192; available as usize];
                scheduler.submit_batch(now, slot, &sizes, slot.0).unwrap().dispatched
            } else if available == 1 {
                let is_going =
                    scheduler.submit(now, slot, 8192, slot.0) == Ok(SubmitOutcome::Dispatch);
                usize::from(is_going)
            } else {
                0
            };
            ends.extend((0..dispatched).map(|_| (now + Duration::from_millis(1), slot)));
        }
        while let NextAction::Dispatch { disk, .. } = scheduler.poll(now) {
            ends.push((now + Duration::from_millis(1), disk));
        }
        if step % 2000 == 0 {
            scheduler.observe(now);
        }
    }
    // All requests are completed, so that the next worker starts with an empty scheduler.
    while !ends.is_empty() {
        now = now + Duration::from_millis(1);
        for (_, slot) in std::mem::take(&mut ends) {
            scheduler.handle_completed_requests(now, slot, completed_write(None));
        }
        while let NextAction::Dispatch { disk, .. } = scheduler.poll(now) {
            ends.push((now, disk));
        }
        if ends.is_empty() && scheduler.next_deadline().is_some() {
            now = scheduler.next_deadline().unwrap();
            while let NextAction::Dispatch { disk, .. } = scheduler.poll(now) {
                ends.push((now, disk));
            }
        }
    }
    now
}

/// Records a store used by one worker, then by two, then by one again.
pub(super) fn storage(sink: &Arc<dyn RecordSink>, ms: u64) {
    let spec = StoreSpec { depth_min: 8, depth_max: 8, ..StoreSpec::default() };
    let start = Time::from_ns(SECOND_NS * 50);
    let mut scheduler = Recorded::record_scheduler(Some(sink), (start, "2"), spec);
    let mut store = Store::new(Declared::Declared(8000));
    let limits = |min, max| Limits {
        min_iops: Iops::new(min),
        max_iops: Iops::new(max),
        ..Limits::default()
    };
    for (disk, limits) in [(DiskId(70), limits(3000, 0)), (DiskId(71), limits(0, 2000))] {
        let proposal = Proposal::SetDisk(disk, LimitsSource::Own(limits));
        store.apply(&[proposal], false).unwrap();
    }
    for change in store.config_steps() {
        scheduler.apply(start, change);
    }
    let mut now = disks(&mut scheduler, start, ms);
    let mut borrower = Borrower::new(Normalization::default(), 1000);
    let (worker, other) = (WorkerId(0), WorkerId(1));
    for slot in [DiskSlot(0), DiskSlot(1)] {
        borrower.add(slot);
    }
    let mut other_borrower = borrower.clone();
    let mut budget = scheduler.into_shared_budget(now, worker, &mut borrower);
    let mut under_way = [0_u32; 2];
    for _ in 0..ms.min(400) {
        now = now + Duration::from_micros(500);
        for (index, borrower) in [&mut borrower, &mut other_borrower].into_iter().enumerate() {
            let slot = DiskSlot(index as u32);
            for _ in 0..std::mem::take(&mut under_way[index]) {
                let latency = Some(Duration::from_micros(500));
                let (disk, operation, bytes) = (slot, IoKind::Read, 8192);
                borrower.handle_completion(now, Completion { disk, operation, bytes, latency });
            }
            if borrower.submit(now, slot, 8192, 9) == Ok(SubmitOutcome::Dispatch) {
                under_way[index] += 1;
            }
            if let Ok(report) = borrower.poll_report(now, Default::default()) {
                budget.handle_report(now, [worker, other][index], &report);
            }
        }
        while let Some(grant) = budget.poll_grant(now) {
            let (index, borrower) =
                if grant.worker == worker { (0, &mut borrower) } else { (1, &mut other_borrower) };
            borrower.handle_grant(now, grant);
            while let NextAction::Dispatch { .. } = borrower.poll(now) {
                under_way[index] += 1;
            }
        }
    }
    budget.observe(now);
    for slot in [DiskSlot(0), DiskSlot(1)] {
        while other_borrower.withdraw_request(slot).is_some() {}
    }
    let mut scheduler = budget.into_scheduler(now, borrower);
    disks(&mut scheduler, now, ms / 8);
    scheduler.flush();
}

pub(super) fn recorded() -> Arc<Bodies> {
    recorded_for(20)
}

/// Returns a recording in which one worker uses the store for `ms` milliseconds.
pub(super) fn recorded_for(ms: u64) -> Arc<Bodies> {
    let (bodies, sink) = recording_sink();
    team(&sink, Algorithm::Dynamic, 60);
    lacp(&sink, 60);
    vmq(&sink, 400);
    cluster(&sink, 100);
    storage(&sink, ms);
    bodies
}
