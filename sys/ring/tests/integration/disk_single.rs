//! Tests of single requests, and of arming, ending and continuing a disk's ring.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::disk::{
    DISK_BYTES, DISK_FEATURES, MemoryDisk, S_IOERR, S_OK, S_UNSUPP, T_DISCARD, T_WRITE_ZEROES,
    Wanted, facts, facts_of, offer, queue, writable_bytes,
};
use crate::rig::any::AnyDriver;
use crate::rig::packed::RING_PACKED;
use crate::rig::{Used, Vm, call_line, count, event, kick_eventfd};
use suimon_ports::{ArmResult, DiskOp, DiskOutcome, DiskQueue};
use suimon_ring::{DiskProperties, DiskRing, RingSetup, used_position};

const EVENT_IDX: u64 = 1 << 29;
const CONFIG_WCE: u64 = 1 << 11;

/// Ring of either form, and a driver that makes requests available one by one.
struct One<'a> {
    vm: &'a Vm,
    driver: AnyDriver<'a>,
    queue: Box<dyn DiskQueue>,
    disk: MemoryDisk,
}

impl<'a> One<'a> {
    fn new(vm: &'a Vm, features: u64, facts: Arc<DiskProperties>) -> Self {
        let driver = AnyDriver::new(vm, 16, features);
        let (call, _) = call_line();
        let queue = queue(vm, &driver.setup(features, &call), facts);
        Self { vm, driver, queue, disk: MemoryDisk::new(DISK_BYTES) }
    }

    /// Executes one request. Returns the operation that reached the disk, and the status.
    fn ask(&mut self, request: Wanted) -> (Option<DiskOp>, u8) {
        let offered = offer(&mut self.driver, &(request, vec![], false)).unwrap();
        let count = self.disk.receive(&mut *self.queue, 8);
        let op = (count > 0).then(|| self.disk.carry_out(&mut *self.queue, 0).op);
        self.queue.flush().unwrap();
        assert_eq!(self.driver.reap_any_order().len(), 1);
        let status = writable_bytes(self.vm, &self.driver, &offered).pop().unwrap();
        (op, status)
    }
}

#[test]
fn writes_are_durable_unless_there_is_a_cache_that_can_be_flushed() {
    let vm = Vm::new(16);
    let write = || Wanted::write(3, vec![7; 1024]);
    let zeroes = || Wanted::range(T_WRITE_ZEROES, 3, 2, 1);
    let write_of = |is_durable| (Some(DiskOp::Write { is_durable }), S_OK);
    let zeroes_of = |is_durable| {
        let op = DiskOp::WriteZeroes { may_unmap: true, is_durable, only_if_fast: false };
        (Some(op), S_OK)
    };
    let mut cached = One::new(&vm, DISK_FEATURES, facts());
    assert_eq!(cached.ask(write()), write_of(false));
    assert_eq!(cached.ask(zeroes()), zeroes_of(false));
    drop(cached);
    let vm = Vm::new(16);
    let mut plain = One::new(&vm, DISK_FEATURES & !(1 << 9), facts());
    assert_eq!(plain.ask(write()), write_of(true));
    drop(plain);
    let vm = Vm::new(16);
    let disk = facts();
    let mut chosen = One::new(&vm, DISK_FEATURES | CONFIG_WCE, Arc::clone(&disk));
    for is_write_back in [true, false, true] {
        disk.set_write_back(is_write_back);
        assert_eq!(chosen.ask(write()), write_of(!is_write_back));
        assert_eq!(chosen.ask(zeroes()), zeroes_of(!is_write_back));
    }
}

#[test]
fn a_read_only_disk_is_only_read() {
    for features in [DISK_FEATURES, DISK_FEATURES | RING_PACKED] {
        let vm = Vm::new(16);
        let mut single = One::new(&vm, features, facts_of(512, true));
        assert_eq!(single.ask(Wanted::read(0, 512)), (Some(DiskOp::Read), S_OK));
        assert_eq!(single.ask(Wanted::flush()), (Some(DiskOp::Flush), S_OK));
        for request in [
            Wanted::write(0, vec![0; 512]),
            Wanted::range(T_DISCARD, 0, 1, 0),
            Wanted::range(T_WRITE_ZEROES, 0, 1, 0),
        ] {
            assert_eq!(single.ask(request), (None, S_IOERR));
        }
    }
}

#[test]
fn requests_that_were_not_negotiated_are_unsupported() {
    let vm = Vm::new(16);
    let mut single = One::new(&vm, 1 << 32, facts());
    assert_eq!(single.ask(Wanted::range(T_DISCARD, 0, 1, 0)), (None, S_UNSUPP));
    assert_eq!(single.ask(Wanted::range(T_WRITE_ZEROES, 0, 1, 0)), (None, S_UNSUPP));
}

#[test]
fn requests_are_aligned_to_large_sectors_and_checked_against_the_current_size() {
    let vm = Vm::new(16);
    let disk = facts_of(4096, false);
    let mut single = One::new(&vm, DISK_FEATURES, Arc::clone(&disk));
    assert_eq!(single.ask(Wanted::read(8, 4096)), (Some(DiskOp::Read), S_OK));
    assert_eq!(single.ask(Wanted::read(1, 4096)), (None, S_IOERR));
    assert_eq!(single.ask(Wanted::read(8, 512)), (None, S_IOERR));
    assert_eq!(single.ask(Wanted::range(T_DISCARD, 8, 1, 0)), (None, S_IOERR));
    let last = || Wanted::read(DISK_BYTES as u64 / 512 - 8, 4096);
    assert_eq!(single.ask(last()), (Some(DiskOp::Read), S_OK));
    disk.resize(DISK_BYTES as u64 - 4096);
    assert_eq!(single.ask(last()), (None, S_IOERR));
}

#[test]
fn failures_are_reported_and_a_failed_read_has_no_length() {
    for features in [DISK_FEATURES, DISK_FEATURES | RING_PACKED] {
        let vm = Vm::new(16);
        let mut single = One::new(&vm, features, facts());
        let outcomes = [
            (DiskOutcome::Failed, S_IOERR),
            (DiskOutcome::NoSpace, S_IOERR),
            (DiskOutcome::ReadOnly, S_IOERR),
            (DiskOutcome::Unsupported, S_UNSUPP),
        ];
        for (outcome, status) in outcomes {
            let offered =
                offer(&mut single.driver, &(Wanted::read(0, 512), vec![], false)).unwrap();
            single.disk.receive(&mut *single.queue, 1);
            let request = single.disk.under_way.pop_back().unwrap();
            single.queue.zero_payload(request.tag, 500, 8);
            single.queue.complete(request.tag, outcome);
            // The tag is free: a second completion and one of an unknown tag have no effect.
            single.queue.complete(request.tag, outcome);
            single.queue.complete(u32::MAX, outcome);
            single.queue.flush().unwrap();
            assert_eq!(single.driver.reap_any_order(), [Used { head: offered.head, len: 0 }]);
            let bytes = writable_bytes(&vm, &single.driver, &offered);
            assert_eq!(
                bytes[496..],
                [[0xee; 4], [0; 4], [0; 4], [0xee; 4]].concat()[..]
                    .to_vec()
                    .into_iter()
                    .chain([status])
                    .collect::<Vec<_>>()[..]
            );
        }
    }
}

#[test]
fn a_ring_is_woken_by_new_requests_only() {
    for features in [DISK_FEATURES, DISK_FEATURES | EVENT_IDX, DISK_FEATURES | RING_PACKED] {
        let vm = Vm::new(16);
        let mut single = One::new(&vm, features, facts());
        for _ in 0..5 {
            offer(&mut single.driver, &(Wanted::flush(), vec![], false)).unwrap();
        }
        assert_eq!(single.queue.arm(), ArmResult::Pending);
        single.queue.disarm();
        assert_eq!(single.disk.receive(&mut *single.queue, 3), 3);
        assert_eq!(single.queue.arm(), ArmResult::Pending, "two requests remain");
        single.queue.disarm();
        assert_eq!(single.disk.receive(&mut *single.queue, 3), 2);
        assert_eq!(single.queue.arm(), ArmResult::Armed);
        single.queue.disarm();
        single.disk.carry_out(&mut *single.queue, 4);
        single.queue.flush().unwrap();
        assert_eq!(single.queue.arm(), ArmResult::Armed, "four requests are in flight");
        offer(&mut single.driver, &(Wanted::flush(), vec![], false)).unwrap();
        assert_eq!(single.queue.arm(), ArmResult::Pending);
    }
}

#[test]
fn all_requests_of_a_ring_complete_in_reverse_order() {
    for features in [DISK_FEATURES, DISK_FEATURES | RING_PACKED] {
        let vm = Vm::new(16);
        let mut single = One::new(&vm, features, facts());
        for _ in 0..100 {
            let mut heads = Vec::new();
            while let Some(offered) = offer(&mut single.driver, &(Wanted::flush(), vec![], true)) {
                heads.push(offered.head);
            }
            assert_eq!(heads.len(), 16);
            assert_eq!(single.disk.receive(&mut *single.queue, 100), 16);
            while let Some(last) = single.disk.under_way.len().checked_sub(1) {
                single.disk.carry_out(&mut *single.queue, last);
            }
            single.queue.flush().unwrap();
            let used: Vec<_> =
                single.driver.reap_any_order().iter().map(|used| used.head).collect();
            heads.reverse();
            assert_eq!(used, heads);
        }
    }
}

#[test]
fn a_drained_ring_continues_at_its_position() {
    for features in [DISK_FEATURES, DISK_FEATURES | RING_PACKED] {
        let vm = Vm::new(16);
        let mut driver = AnyDriver::new(&vm, 16, features);
        let (call, _far) = call_line();
        let mut setup = driver.setup(features, &call);
        let mut disk = MemoryDisk::new(DISK_BYTES);
        for round in 0..40 {
            let ring = DiskRing::new(vm.map(), &setup, facts()).unwrap();
            let state = ring.state();
            let mut queue = ring.into_queue();
            for index in 0..5 {
                let request = Wanted::write(index, vec![round; 512]);
                offer(&mut driver, &(request, vec![], index == 3)).unwrap();
            }
            assert_eq!(disk.receive(&mut *queue, 3), 3);
            for index in [1, 1, 0] {
                disk.carry_out(&mut *queue, index);
            }
            drop(queue);
            assert_eq!(driver.reap_any_order().len(), 3);
            setup.base = setup.features.base_from_vring(state.vring_base());
            if features & RING_PACKED == 0 {
                assert_eq!(used_position(&vm.map(), &setup).unwrap(), setup.base);
            }
            let mut queue = queue_of(&vm, &setup);
            assert_eq!(disk.receive(&mut *queue, 8), 2);
            disk.carry_out(&mut *queue, 1);
            disk.carry_out(&mut *queue, 0);
            drop(queue);
            assert_eq!(driver.reap_any_order().len(), 2);
            setup.base = driver.setup(features, &call).base;
            assert!(disk.bytes[..5 * 512].iter().all(|byte| *byte == round));
        }
    }
}

fn queue_of(vm: &Vm, setup: &RingSetup) -> Box<dyn DiskQueue> {
    queue(vm, setup, facts())
}

#[test]
fn a_polled_ring_never_sleeps() {
    let vm = Vm::new(16);
    let driver = AnyDriver::new(&vm, 16, DISK_FEATURES);
    let (call, _far): (_, OwnedFd) = call_line();
    let setup = RingSetup { kick: None, ..driver.setup(DISK_FEATURES, &call) };
    let mut polled = queue_of(&vm, &setup);
    assert_eq!(polled.arm(), ArmResult::Pending);
    let kick = event();
    let mut woken = queue_of(&vm, &RingSetup { kick: Some(kick_eventfd(&kick)), ..setup });
    rustix::io::write(&kick, &1_u64.to_ne_bytes()).unwrap();
    woken.disarm();
    assert_eq!(count(&kick), 0, "disarm empties the descriptor");
}
