//! Requests of NBD clients to disks of every format while operations of the store fail.

use suimon_rig::{FaultEffect, NbdClient, StoreFault, StoreOperation, run, wait_until};

use super::*;

/// Effect of faults on all operations of one kind.
#[derive(Clone, Copy, Debug)]
struct Case {
    operation: StoreOperation,
    effect: FaultEffect,
}

const fn case(operation: StoreOperation, effect: FaultEffect) -> Case {
    Case { operation, effect }
}

impl Case {
    const fn is_error(&self) -> bool {
        matches!(self.effect, FaultEffect::Error(_) | FaultEffect::Lose)
    }
}

const EIO_EFFECT: FaultEffect = FaultEffect::Error(EIO as i32);
const ENOSPC_EFFECT: FaultEffect = FaultEffect::Error(ENOSPC as i32);
const DELAY: FaultEffect = FaultEffect::Delay(Duration::from_secs(2));

/// Faults of the fast tier. Those of allocation come first, before blocks are allocated.
const FEW: [Case; 4] = [
    case(StoreOperation::Allocate, ENOSPC_EFFECT),
    case(StoreOperation::Write, EIO_EFFECT),
    case(StoreOperation::Write, FaultEffect::Short),
    case(StoreOperation::Flush, FaultEffect::Lose),
];

const ALL: [Case; 18] = [
    case(StoreOperation::Allocate, EIO_EFFECT),
    case(StoreOperation::Allocate, ENOSPC_EFFECT),
    case(StoreOperation::Allocate, DELAY),
    case(StoreOperation::Attributes, EIO_EFFECT),
    case(StoreOperation::SetLength, EIO_EFFECT),
    case(StoreOperation::Write, EIO_EFFECT),
    case(StoreOperation::Write, ENOSPC_EFFECT),
    case(StoreOperation::Write, FaultEffect::Short),
    case(StoreOperation::Write, DELAY),
    case(StoreOperation::Punch, EIO_EFFECT),
    case(StoreOperation::Punch, ENOSPC_EFFECT),
    case(StoreOperation::Read, EIO_EFFECT),
    case(StoreOperation::Read, FaultEffect::Short),
    case(StoreOperation::Read, DELAY),
    case(StoreOperation::Flush, EIO_EFFECT),
    case(StoreOperation::Flush, ENOSPC_EFFECT),
    case(StoreOperation::Flush, FaultEffect::Lose),
    case(StoreOperation::Flush, DELAY),
];

/// Disk with its client and the possible contents.
struct Served {
    format: Format,
    content: Content,
    /// Next offset in MiB that was never written.
    unused_mib: u64,
    /// Number of flushes that have failed.
    failed_flushes: usize,
}

/// Results of the requests during a fault.
#[derive(Debug, Default)]
struct Outcome {
    requests: u32,
    refused: Vec<u32>,
    refused_flushes: u32,
}

impl Outcome {
    fn add(&mut self, result: &Result<(), NbdFailure>) -> bool {
        self.requests += 1;
        let refused = is_refused(result);
        self.refused.extend(refused);
        refused.is_none()
    }
}

impl Served {
    fn write(&mut self, client: &mut NbdClient, offset: u64) -> Result<(), NbdFailure> {
        let value = self.content.next();
        let written = client.write(offset, &vec![value; CHUNK as usize], false);
        self.content.handle(offset, CHUNK, value, written.is_ok());
        written
    }

    fn flush(&mut self, client: &mut NbdClient, outcome: &mut Outcome) {
        let flushed = client.flush();
        if outcome.add(&flushed) {
            self.content.handle_flush();
        } else {
            outcome.refused_flushes += 1;
        }
    }

    /// Writes to allocated and new blocks, flushes, discards and reads. Records the possible
    /// contents.
    fn use_all(&mut self, client: &mut NbdClient) -> Outcome {
        let mut outcome = Outcome::default();
        let new = self.unused_mib % (DISK_BYTES / MIB) * MIB;
        self.unused_mib += 2;
        for offset in [3 * CHUNK, new + CHUNK] {
            outcome.add(&self.write(client, offset));
        }
        self.flush(client, &mut outcome);
        for offset in [2 * CHUNK, new + 3 * CHUNK] {
            outcome.add(&self.write(client, offset));
        }
        let zeroed = client.write_zeroes(new, 2 * CHUNK);
        self.content.handle(new, 2 * CHUNK, 0, zeroed.is_ok());
        outcome.add(&zeroed);
        // A whole block of every format, which can be discarded. Its contents are undefined
        // afterwards.
        let discarded = client.discard(14 * MIB, 2 * MIB);
        self.content.handle(14 * MIB, 2 * MIB, 0, false);
        outcome.add(&discarded);
        outcome.add(&client.read(CHUNK, &mut [0; 8192]));
        self.flush(client, &mut outcome);
        outcome
    }

    /// Checks what the daemon reports about the disk after a fault. Only a failed flush of the file
    /// may have lost data; metadata whose write failed is written again by the next flush.
    fn check_reports(
        &mut self,
        host: &Host,
        client: &mut NbdClient,
        case: Case,
        outcome: &Outcome,
    ) {
        let name = self.format.name;
        let is_faulted = case.operation == StoreOperation::Flush && case.is_error();
        if is_faulted {
            assert_eq!(outcome.refused_flushes, 2, "{name} {case:?}: {outcome:?}");
            self.failed_flushes += 1;
            assert_eq!(is_refused(&client.flush()), Some(EIO), "{name} {case:?}");
            assert_eq!(is_refused(&self.write(client, 5 * CHUNK)), Some(EIO), "{name} {case:?}");
            assert_eq!(host.shown(name)["state"], "faulted", "{name} {case:?}");
            self.content.handle_failed_flush();
        } else {
            assert_eq!(is_refused(&client.flush()), None, "{name} {case:?}");
            self.content.handle_flush();
            // A disk whose store was full is reported as full for some seconds.
            let state = host.shown(name)["state"].clone();
            assert!(
                ["ready", "full"].contains(&state.as_str().unwrap()),
                "{name} {case:?}: {state}"
            );
        }
        // The event is recorded after the requests have failed.
        if is_faulted {
            let event = host.wait_event(name, 6124, self.failed_flushes);
            let detail = event["fields"].to_string() + &event["text"].to_string();
            assert!(detail.contains("os error"), "{name} {case:?}: {event}");
        } else if outcome.refused.contains(&EIO) {
            let event = host.wait_event(name, 6110, 1);
            assert!(event["fields"]["detail"].to_string().contains("os error"), "{event}");
        }
    }
}

/// Injects the faults of each case into disks of every format, one after the other.
fn inject_all(formats: &[Format], cases: &[Case]) {
    let mut host = Host::start(formats);
    let mut disks: Vec<Served> = formats
        .iter()
        .map(|format| Served {
            format: *format,
            content: Content::zeros(),
            unused_mib: 16,
            failed_flushes: 0,
        })
        .collect();
    for disk in &mut disks {
        let mut client = host.connect(disk.format.name);
        for chunk in [0, 1, 2, 16, 14 * 16, 15 * 16] {
            disk.write(&mut client, chunk * CHUNK).unwrap();
        }
        client.flush().unwrap();
        disk.content.handle_flush();
        if disk.format.has_parent {
            host.snapshot(disk.format.name, &disk.format.file());
        }
    }
    for case in cases {
        for disk in &mut disks {
            inject(&host, disk, *case);
        }
        host.restart();
        for disk in &mut disks {
            host.wait_ready(disk.format.name);
            let mut client = host.connect(disk.format.name);
            disk.content.check(&mut client, &format!("{} {case:?}", disk.format.name));
            client.flush().unwrap();
            disk.content.handle_flush();
        }
    }
    check_images(&mut host, &disks);
}

/// Sends requests to a disk while a fault is injected.
fn inject(host: &Host, disk: &mut Served, case: Case) {
    let name = disk.format.name;
    let mut client = host.connect(name);
    host.store.clear().unwrap();
    let fault = StoreFault::new(case.operation, case.effect).on(&format!("{name}*"));
    let is_delay = matches!(case.effect, FaultEffect::Delay(_));
    host.store.inject(&if is_delay { fault.times(1) } else { fault }).unwrap();
    let outcome = disk.use_all(&mut client);
    let faults = host.store.counts().unwrap().faults();
    host.store.clear().unwrap();
    println!("{name:10} {case:?}: {faults} faults, refused {:?}", outcome.refused);
    let reports_each = matches!(case.operation, StoreOperation::Write | StoreOperation::Read);
    if !case.is_error() {
        assert!(outcome.refused.is_empty(), "{name} {case:?}: {outcome:?}");
    } else if reports_each {
        assert_eq!(faults > 0, !outcome.refused.is_empty(), "{name} {case:?}: {outcome:?}");
    }
    disk.check_reports(host, &mut client, case, &outcome);
}

/// Checks that QEMU finds no damage in the images.
fn check_images(host: &mut Host, disks: &[Served]) {
    for disk in disks {
        let name = disk.format.name;
        wait_until("closed connections of clients", PATIENCE, || {
            Ok(host.shown(name)["nbd"]["clients"] == 0)
        })
        .unwrap();
        let said = host.daemon.cli(&["disk", "check", name]).unwrap();
        let all = said.stdout.clone() + &said.stderr;
        assert!(said.is_ok() && all.contains("no damage was found"), "{name}: {all}");
        let reported = host.events(name, 6124);
        assert_eq!(reported.len(), disk.failed_flushes, "{name}: {reported:?}");
    }
    assert!(host.daemon.stop().unwrap().success());
    for disk in disks {
        let file = format!("{}/{}", host.store.files(), disk.format.file());
        match (disk.format.format, disk.format.has_parent) {
            // QEMU does not open VHDX images with a parent.
            ("vhdx", false) => drop(run(&["qemu-img", "check", "-f", "vhdx", &file]).unwrap()),
            // QEMU has no check of this format; it reads all of the image.
            ("vhd", false) => {
                let copy = host.rig.path("copy");
                run(&["qemu-img", "convert", "-f", "vpc", "-O", "raw", &file, &copy]).unwrap();
            }
            _ => {}
        }
    }
}

#[test]
fn no_flushed_write_is_lost_and_every_failed_write_is_reported() {
    inject_all(&FORMATS, &FEW);
}

mod full {
    #[test]
    fn no_flushed_write_is_lost_and_every_failed_write_is_reported() {
        super::inject_all(&super::FORMATS, &super::ALL);
    }
}
