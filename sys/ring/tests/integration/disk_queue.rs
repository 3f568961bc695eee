//! Model tests of disk rings against a direct implementation of virtio 1.3, section 5.2.6, and, for
//! used elements and interrupts, against virtio-queue's device side on a second VM.

use std::collections::VecDeque;

use crate::disk::{
    DISK_BYTES, DISK_FEATURES, MemoryDisk, Offered, S_IOERR, S_OK, S_UNSUPP, SERIAL, T_DISCARD,
    T_FLUSH, T_GET_ID, T_IN, T_OUT, T_WRITE_ZEROES, Wanted, facts, offer, writable_bytes,
};
use crate::rig::any::AnyDriver;
use crate::rig::packed::RING_PACKED;
use crate::rig::{Driver, Used, Vm, call_line, count};
use proptest::prelude::*;
use suimon_ring::DiskRing;
use virtio_queue::{Queue, QueueT};

const EVENT_IDX: u64 = 1 << 29;

/// Expected response of a device: the bytes written from the first device-writable one on, and the
/// status.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    bytes: Vec<u8>,
    status: u8,
    /// True if the ring completes the request itself, without the disk.
    is_inside: bool,
}

/// Executes a request on the disk contents `disk` as the specification states.
fn answer(disk: &mut [u8], request: &Wanted) -> Answer {
    let in_ring = |status, bytes| Answer { bytes, status, is_inside: true };
    let submitted = |bytes| Answer { bytes, status: S_OK, is_inside: false };
    let byte_range = |sector: u64, bytes: u64| {
        let from = sector.checked_mul(512)?;
        let end = from.checked_add(bytes)?;
        (bytes % 512 == 0 && end <= disk.len() as u64).then_some(from as usize..end as usize)
    };
    match request.kind {
        T_IN => match byte_range(request.sector, request.capacity as u64) {
            Some(range) if range.is_empty() => in_ring(S_OK, vec![]),
            Some(range) => submitted(disk[range].to_vec()),
            None => in_ring(S_IOERR, vec![]),
        },
        T_OUT => match byte_range(request.sector, request.payload.len() as u64) {
            Some(range) if range.is_empty() => in_ring(S_OK, vec![]),
            Some(range) => {
                disk[range].copy_from_slice(&request.payload);
                submitted(vec![])
            }
            None => in_ring(S_IOERR, vec![]),
        },
        T_FLUSH => submitted(vec![]),
        T_GET_ID => {
            let mut id = SERIAL.as_bytes().to_vec();
            id.resize(20, 0);
            id.truncate(request.capacity);
            in_ring(S_OK, id)
        }
        T_DISCARD | T_WRITE_ZEROES => {
            let payload = &request.payload;
            if payload.is_empty() || payload.len() % 16 != 0 {
                return in_ring(S_IOERR, vec![]);
            }
            let sector = u64::from_le_bytes(payload[..8].try_into().unwrap());
            let sectors = u32::from_le_bytes(payload[8..12].try_into().unwrap());
            let flags = u32::from_le_bytes(payload[12..16].try_into().unwrap());
            let known_flags = u32::from(request.kind == T_WRITE_ZEROES);
            if payload.len() > 16 || flags & !known_flags != 0 {
                return in_ring(S_UNSUPP, vec![]);
            }
            match byte_range(sector, u64::from(sectors) * 512) {
                Some(range) if range.is_empty() => in_ring(S_OK, vec![]),
                Some(range) => {
                    if request.kind == T_WRITE_ZEROES {
                        disk[range].fill(0);
                    }
                    submitted(vec![])
                }
                None => in_ring(S_IOERR, vec![]),
            }
        }
        _ => in_ring(S_UNSUPP, vec![]),
    }
}

/// Returns the expected `len` of the used element: the number of bytes written without a gap.
fn length(request: &Wanted, answer: &Answer) -> u32 {
    let written = answer.bytes.len();
    (written + usize::from(written == request.capacity)) as u32
}

fn any_request() -> impl Strategy<Value = Wanted> {
    let bytes = || prop_oneof![4 => (0..6_usize).prop_map(|n| n * 512), 1 => 0..3000_usize];
    let sector = || prop_oneof![6 => 0..64_u64, 1 => 60..70_u64, 1 => any::<u64>()];
    let space = prop_oneof![4 => Just(0_usize), 1 => 0..40_usize];
    prop_oneof![
        4 => (sector(), bytes()).prop_map(|(sector, bytes)| Wanted::read(sector, bytes)),
        4 => (sector(), bytes(), any::<u8>(), space.clone()).prop_map(|(sector, bytes, seed, space)| {
            let payload = (0..bytes).map(|at| (at * 13) as u8 ^ seed).collect();
            Wanted { capacity: space, ..Wanted::write(sector, payload) }
        }),
        1 => Just(Wanted::flush()),
        1 => (0..40_usize).prop_map(|space| Wanted { kind: T_GET_ID, capacity: space, ..Wanted::flush() }),
        2 => (prop::bool::ANY, sector(), 0..10_u32, 0..3_u32, space).prop_map(
            |(zeroes, sector, sectors, flags, space)| {
                let kind = if zeroes { T_WRITE_ZEROES } else { T_DISCARD };
                Wanted { capacity: space, ..Wanted::range(kind, sector, sectors, flags) }
            }
        ),
        1 => (0..50_usize).prop_map(|len| Wanted {
            kind: T_DISCARD,
            ..Wanted::write(0, vec![0; len])
        }),
        1 => (any::<u32>(), bytes()).prop_map(|(kind, bytes)| Wanted {
            kind: kind | 32,
            ..Wanted::read(0, bytes)
        }),
    ]
}

#[derive(Clone, Debug)]
struct Round {
    requests: Vec<(Wanted, Vec<u16>, bool)>,
    max: usize,
    /// Indices of the requests in flight to complete, one after the other. Then the ring is
    /// flushed.
    answers: Vec<u16>,
    event_ahead: u16,
    no_interrupt: bool,
}

impl Round {
    /// Returns a round that receives and completes all remaining requests.
    fn last() -> Self {
        Self {
            requests: vec![],
            max: 1000,
            answers: vec![0; 1000],
            event_ahead: 0,
            no_interrupt: false,
        }
    }
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let cuts = prop_oneof![3 => Just(vec![]), 2 => prop::collection::vec(any::<u16>(), 1..4)];
    let request = (any_request(), cuts, any::<bool>());
    let round = (
        prop::collection::vec(request, 0..24),
        1..40_usize,
        prop::collection::vec(any::<u16>(), 0..24),
        0..6_u16,
        any::<bool>(),
    );
    let round = round.prop_map(|(requests, max, answers, event_ahead, no_interrupt)| Round {
        requests,
        max,
        answers,
        event_ahead,
        no_interrupt,
    });
    prop::collection::vec(round, 1..6)
}

/// Reference model of the device, from the specification, with the expected order of requests.
struct Letter {
    disk: Vec<u8>,
    offered: VecDeque<Offered>,
    under_way: VecDeque<Offered>,
    /// Requests that were completed, and that the driver has not seen yet.
    answered: Vec<(Offered, Answer)>,
}

impl Letter {
    fn new(disk: &[u8]) -> Self {
        Self {
            disk: disk.to_vec(),
            offered: VecDeque::new(),
            under_way: VecDeque::new(),
            answered: Vec::new(),
        }
    }

    /// Takes requests until `max` of them reach the disk. Returns the numbers of requests that
    /// reach the disk and that the ring completes itself.
    fn receive(&mut self, max: usize) -> (usize, usize) {
        let (mut count, mut inside_count) = (0, 0);
        while count < max {
            let Some(offered) = self.offered.pop_front() else { break };
            // On a copy of the disk, only to determine whether the request reaches the disk.
            let answer = answer(&mut self.disk.clone(), &offered.wanted);
            if answer.is_inside {
                self.answered.push((offered, answer));
                inside_count += 1;
            } else {
                self.under_way.push_back(offered);
                count += 1;
            }
        }
        (count, inside_count)
    }

    fn carry_out(&mut self, index: usize) {
        let offered = self.under_way.remove(index).unwrap();
        let answer = answer(&mut self.disk, &offered.wanted);
        self.answered.push((offered, answer));
    }

    /// Compares the used elements that the driver reads with the expected ones.
    fn reap(&mut self, vm: &Vm, driver: &mut AnyDriver<'_>) -> Vec<Used> {
        let used = driver.reap_any_order();
        let expected: Vec<_> = self.answered.drain(..).collect();
        let lengths = expected.iter().map(|(offered, answer)| Used {
            head: offered.head,
            len: length(&offered.wanted, answer),
        });
        assert_eq!(used, lengths.collect::<Vec<_>>());
        for (offered, answer) in expected {
            let mut bytes = answer.bytes;
            bytes.resize(offered.wanted.capacity, 0xee);
            bytes.push(answer.status);
            assert_eq!(writable_bytes(vm, driver, &offered), bytes, "{offered:?}");
        }
        used
    }
}

/// virtio-queue's device side of a second ring, whose driver makes the same chains available.
struct Reference<'a> {
    driver: Driver<'a>,
    queue: Queue,
    event_idx: bool,
}

impl<'a> Reference<'a> {
    fn new(vm: &'a Vm, size: u16, features: u64) -> Self {
        let driver = Driver::starting_at(vm, size, 0xfffa);
        let queue = driver.reference(features & EVENT_IDX != 0);
        Self { driver, queue, event_idx: features & EVENT_IDX != 0 }
    }

    /// Returns the chains `used` as the ring under test did. Returns true if the driver is
    /// interrupted.
    fn give_back(&mut self, used: &[Used], flags: u16) -> bool {
        let memory = &self.driver.vm.memory;
        while self.queue.pop_descriptor_chain(memory).is_some() {}
        for used in used {
            self.queue.add_used(memory, used.head, used.len).unwrap();
        }
        let is_required = if self.event_idx {
            self.queue.needs_notification(memory).unwrap()
        } else {
            flags & 1 == 0
        };
        assert_eq!(self.driver.reap(), used);
        is_required && !used.is_empty()
    }
}

fn agrees(size: u16, features: u64, rounds: Vec<Round>) {
    let (vm, reference_vm) = (Vm::new(size), Vm::new(size));
    let mut driver = AnyDriver::new(&vm, size, features);
    let mut twin =
        (features & RING_PACKED == 0).then(|| Reference::new(&reference_vm, size, features));
    let (call, interrupts) = call_line();
    let setup = driver.setup(features, &call);
    let ring = DiskRing::new(vm.map(), &setup, facts()).unwrap();
    let state = ring.state();
    let mut queue = ring.into_queue();
    let mut disk = MemoryDisk::new(DISK_BYTES);
    let mut letter = Letter::new(&disk.bytes);
    let mut is_first = true;
    for round in rounds.into_iter().chain([Round::last()]) {
        for request in &round.requests {
            let Some(offered) = offer(&mut driver, request) else { continue };
            if let Some(twin) = &mut twin {
                let (lens, readable) = (vec![1; driver.pieces(offered.head).len()], 0);
                let head = twin.driver.add_request(&lens, readable, request.2, &[]);
                assert_eq!(head, Some(offered.head));
            }
            letter.offered.push_back(offered);
        }
        let event = |driver: &Driver<'_>| {
            driver.set_used_event(driver.used.wrapping_add(round.event_ahead));
            if features & EVENT_IDX == 0 {
                driver.set_avail_flags(u16::from(round.no_interrupt));
            }
        };
        let mut compare = |driver: &mut AnyDriver<'_>, letter: &mut Letter, calls: u64| {
            let used = letter.reap(&vm, driver);
            if let Some(twin) = &mut twin {
                let expects_call = twin.give_back(&used, u16::from(round.no_interrupt));
                if !used.is_empty() {
                    assert!(expects_call == (calls > 0) || is_first, "{calls} calls for {used:?}");
                    is_first = false;
                }
                event(&twin.driver);
            }
            if let AnyDriver::Split(driver) = driver {
                event(driver);
            }
        };
        // The driver's events are set before any chain is returned.
        count(&interrupts);
        compare(&mut driver, &mut letter, 0);
        let received = disk.receive(&mut *queue, round.max);
        let calls = count(&interrupts);
        let (expected, inside_count) = letter.receive(round.max);
        assert_eq!(received, expected);
        assert!(inside_count > 0 || calls == 0);
        compare(&mut driver, &mut letter, calls);
        for index in round.answers.iter().take(disk.under_way.len().min(round.answers.len())) {
            let index = usize::from(*index) % disk.under_way.len();
            disk.carry_out(&mut *queue, index);
            letter.carry_out(index);
        }
        assert!(driver.reap_any_order().is_empty(), "completions are visible before the flush");
        queue.flush().unwrap();
        let calls = count(&interrupts);
        compare(&mut driver, &mut letter, calls);
        assert_eq!(disk.bytes, letter.disk);
    }
    assert!(driver.outstanding().is_empty() && disk.under_way.is_empty());
    drop(queue);
    assert_eq!(
        setup.features.base_from_vring(state.vring_base()),
        driver.setup(features, &call).base
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn split_rings_agree_with_the_specification_and_the_reference(
        size_log in 3..7_u32,
        event_idx in any::<bool>(),
        rounds in rounds(),
    ) {
        agrees(1 << size_log, DISK_FEATURES | if event_idx { EVENT_IDX } else { 0 }, rounds);
    }

    #[test]
    fn packed_rings_agree_with_the_specification(
        size in 7..70_u16,
        event_idx in any::<bool>(),
        rounds in rounds(),
    ) {
        let features = DISK_FEATURES | RING_PACKED;
        agrees(size, features | if event_idx { EVENT_IDX } else { 0 }, rounds);
    }
}
