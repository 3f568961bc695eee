//! Tests of a session with a hostile QEMU at the other end of a real socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex, Weak};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde_json::json;
use suimon_ports::{NicStandbyState, VmDevice, VmErrorKind, VmNotice};
use suimon_qmp::Command;

use super::*;
use crate::messages::send_message;
use crate::monitor::{COMMANDS_IN_FLIGHT_MAX, OPERATION_LIMIT, ReplyRecipient, SendError};
use crate::wire::{ProcessEnd, Reply};

/// Time limit for conditions that a test waits for; generous, because the machine may be loaded. A
/// QEMU that could delay the end of a session would delay it for longer.
const LIMIT: Duration = Duration::from_secs(40);

struct Notices(Mutex<Sender<VmNotice>>);

impl VmObserver for Notices {
    fn handle_notice(&self, notice: VmNotice) {
        let _ = self.0.lock().unwrap().send(notice);
    }
}

/// Session whose QEMU and launcher the test simulates.
struct Bench {
    session: Option<Session>,
    qemu: UnixStream,
    launcher: OwnedFd,
    notices: Receiver<VmNotice>,
}

impl Bench {
    fn new() -> Self {
        let (stream, qemu) = UnixStream::pair().unwrap();
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (watch, launcher) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        let (sender, notices) = channel();
        let (session, _) = Session::start(SessionParameters {
            name: "web",
            stream,
            watch: ProcessWatch::of(watch),
            observer: Arc::new(Notices(Mutex::new(sender))),
            thread_start: Arc::new(|| Ok(())),
            close_queue: &CloseQueue::default(),
        })
        .unwrap();
        Self { session: Some(session), qemu, launcher, notices }
    }

    fn shared(&self) -> Arc<SharedMonitor> {
        Arc::clone(self.session.as_ref().unwrap().shared())
    }

    /// Sends the report of the process's end, as the launcher does.
    fn report_end(&self) {
        let (status, log) = ("QEMU ended with status 1".to_owned(), String::new());
        let exit = ProcessEnd { is_success: Some(false), status, log };
        send_message(&self.launcher, &Reply::Ended(exit)).unwrap();
    }

    /// Returns the reason for the end that the observer received.
    fn end(&self) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let notice = self.notices.recv_timeout(remaining).expect("the end of the VM");
            if let VmNotice::Ended { reason, .. } = notice {
                return reason;
            }
        }
    }

    /// Returns the names of the commands that the session has sent since the last call.
    fn commands(&self) -> Vec<String> {
        self.qemu.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = (&self.qemu).read(&mut buffer) {
            text.extend_from_slice(&buffer[..count]);
        }
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let name = |line: &[u8]| -> Option<String> {
            let command: serde_json::Value = serde_json::from_slice(line).ok()?;
            Some(command["execute"].as_str()?.to_owned())
        };
        lines.map(|line| name(line).expect("a command")).collect()
    }

    /// Sends `text` repeatedly, at most `times`, until the session has received nothing for
    /// `timeout`. Returns true if it stopped.
    fn flood(&self, text: &str, times: usize, timeout: Duration) -> bool {
        let chunk = text.repeat(1000);
        self.qemu.set_write_timeout(Some(timeout)).unwrap();
        (0..times).any(|_| (&self.qemu).write_all(chunk.as_bytes()).is_err())
    }
}

impl Bench {
    /// Sends `text` repeatedly for `time`. Returns the number of bytes that the socket accepted.
    fn flood_for(&self, text: &str, time: Duration) -> u64 {
        let (chunk, deadline, mut written) = (text.repeat(1000), Instant::now() + time, 0);
        self.qemu.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        while Instant::now() < deadline {
            let tail = chunk.get(written as usize % chunk.len()..).unwrap();
            written += (&self.qemu).write(tail.as_bytes()).unwrap_or(0) as u64;
        }
        written
    }
}

const EVENT: &str = "{\"event\":\"RESET\"}\n";

/// The messages of a single read would take a minute at the rate limit of events.
#[test]
fn a_flood_of_events_delays_neither_the_report_of_the_end_nor_the_release() {
    let bench = Bench::new();
    assert!(
        bench.flood(EVENT, 1000, Duration::from_millis(300)),
        "events are read without a limit"
    );
    bench.report_end();
    assert!(bench.end().contains("status 1"));

    let mut bench = Bench::new();
    assert!(bench.flood(EVENT, 1000, Duration::from_millis(300)));
    let shared: Weak<SharedMonitor> = Arc::downgrade(&bench.shared());
    bench.session = None;
    let deadline = Instant::now() + LIMIT;
    while shared.strong_count() > 0 {
        assert!(Instant::now() < deadline, "the thread of a dropped session still runs");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn replies_that_nothing_has_requested_are_paced_like_events() {
    let empty_lines = "\n".repeat(50);
    let cases = [
        ("{\"return\":{},\"id\":18446744073709551615}\n", true),
        ("{\"return\":{}}\n", true),
        ("{\"error\":{\"desc\":\"no\"},\"id\":\"x\"}\n", true),
        ("{\"QMP\":{\"version\":{\"qemu\":{\"major\":9,\"minor\":0,\"micro\":0}}}}\n", true),
        // Empty lines are not messages, but their bytes are counted.
        (empty_lines.as_str(), false),
    ];
    for (text, is_message) in cases {
        let bench = Bench::new();
        let started_at = Instant::now();
        let written = bench.flood_for(text, Duration::from_secs(3));
        let seconds = started_at.elapsed().as_secs() + 1;
        // The session reads at most the bytes that the rate limit permits, plus those buffered by
        // the sockets and one read: less than 1 MiB. Without a rate limit, hundreds of MiB are read
        // in this time, and at least tens on a loaded machine.
        let paced = match is_message {
            true => (200 + 50 * seconds) * text.len() as u64,
            false => (4 + seconds) << 20,
        };
        assert!(written <= paced + (1 << 20), "{written} bytes of {text:?} were read");
        bench.report_end();
        assert!(bench.end().contains("status 1"));
    }
}

#[test]
fn a_caller_gets_the_reply_to_its_own_command_only() {
    let bench = Bench::new();
    let shared = bench.shared();
    let caller = thread::spawn(move || shared.request(&Command::QueryStatus));
    let mut command = [0; 256];
    let count = (&bench.qemu).read(&mut command).unwrap();
    assert!(count > 0);
    let replies = "{\"return\":\"two\",\"id\":2}\n{\"return\":\"none\"}\n\
                {\"return\":\"text\",\"id\":\"1\"}\n{\"return\":\"float\",\"id\":1.5}\n\
                {\"return\":\"negative\",\"id\":-1}\n{\"event\":\"NO_SUCH\",\"data\":7}\n";
    // The text is sent in pieces that end within lines.
    for part in replies.as_bytes().chunks(7) {
        (&bench.qemu).write_all(part).unwrap();
    }
    (&bench.qemu)
        .write_all(b"{\"return\":\"one\",\"id\":1}\n{\"return\":\"again\",\"id\":1}\n")
        .unwrap();
    assert_eq!(caller.join().unwrap().unwrap(), json!("one"));
}

#[test]
fn invalid_data_ends_the_session_with_its_position() {
    let deep = format!("{}\n", "[".repeat(100_000));
    let long = "x".repeat(suimon_qmp::LINE_BYTES_MAX + 1);
    let cases = [
        ("{\"event\":\"STOP\"}\nnonsense\n", "at byte 17: not JSON"),
        (deep.as_str(), "at byte 0: not JSON"),
        (long.as_str(), "at byte 0: a line longer than"),
        ("[]\n", "at byte 0: a line that is not a JSON object"),
        ("{\"event\":[]}\n", "at byte 0: an event whose name is not a string"),
        ("{\"QMP\":{}}\n", "at byte 0: a greeting without a version"),
    ];
    for (text, expected) in cases {
        let bench = Bench::new();
        let shared = bench.shared();
        let caller = thread::spawn(move || shared.request(&Command::QueryStatus));
        let _ = (&bench.qemu).write_all(text.as_bytes());
        let error = caller.join().unwrap().unwrap_err();
        assert_eq!(error.kind, VmErrorKind::NotRunning);
        assert!(error.text.starts_with("VM web "), "{error}");
        // A process that violates the protocol is killed by the launcher, which then ends the
        // watch.
        drop(bench.launcher.try_clone());
        bench.report_end();
        let Bench { notices, .. } = bench;
        let notice = notices.iter().find(|notice| matches!(notice, VmNotice::Ended { .. }));
        let Some(VmNotice::Ended { is_orderly, reason }) = notice else { panic!("no end") };
        assert!(!is_orderly);
        assert!(reason.contains(expected) || reason.contains("status 1"), "{reason}");
    }
}

#[test]
fn a_connection_that_ends_within_a_reply_fails_the_command() {
    let bench = Bench::new();
    let shared = bench.shared();
    let caller = thread::spawn(move || shared.request(&Command::QueryStatus));
    let mut command = [0; 256];
    assert!((&bench.qemu).read(&mut command).unwrap() > 0);
    (&bench.qemu).write_all(b"{\"return\":{\"sta").unwrap();
    bench.qemu.shutdown(Shutdown::Both).unwrap();
    let error = caller.join().unwrap().unwrap_err();
    assert_eq!(error.kind, VmErrorKind::NotRunning);
    assert!(error.text.contains("VM web"), "{error}");
}

/// The reply arrives one byte at a time, and is complete long after the time limit of the command.
#[test]
fn a_reply_that_arrives_slowly_is_not_awaited() {
    let bench = Bench::new();
    let shared = bench.shared();
    let caller = thread::spawn(move || shared.request(&Command::QueryStatus));
    while !caller.is_finished() {
        (&bench.qemu).write_all(b" ").unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    let error = caller.join().unwrap().unwrap_err();
    assert_eq!(error.kind, VmErrorKind::Timeout);
    assert!(error.text.contains("VM web: QEMU did not complete `query-status`"), "{error}");
}

#[test]
fn a_qemu_that_reads_no_commands_fails_them_in_time() {
    let bench = Bench::new();
    let shared = bench.shared();
    let command = Command::DeviceDel { id: "x".repeat(1 << 20) };
    let error = shared.request(&command).unwrap_err();
    assert!(error.text.contains("VM web"), "{error}");
}

#[test]
fn texts_and_ids_of_qemu_are_bounded() {
    let bench = Bench::new();
    let shared = bench.shared();
    let caller = thread::spawn(move || shared.request(&Command::QueryStatus));
    let mut command = [0; 256];
    assert!((&bench.qemu).read(&mut command).unwrap() > 0);
    let long = "\\u001b[2J".repeat(50_000);
    for id in
        ["../../etc", "nic-", "nic-a/b", "nic-\\u0000", &format!("disk-{long}"), "vf-", "vf-../x"]
    {
        let event = format!("{{\"event\":\"DEVICE_DELETED\",\"data\":{{\"device\":\"{id}\"}}}}\n");
        (&bench.qemu).write_all(event.as_bytes()).unwrap();
    }
    let error = format!("{{\"error\":{{\"desc\":\"{long}\"}},\"id\":1}}\n");
    (&bench.qemu).write_all(error.as_bytes()).unwrap();
    let error = caller.join().unwrap().unwrap_err();
    assert!(error.text.len() < 2000 && !error.text.chars().any(char::is_control), "{error}");
    (&bench.qemu)
        .write_all(b"{\"event\":\"DEVICE_DELETED\",\"data\":{\"device\":\"vf-a\"}}\n")
        .unwrap();
    // Only the valid id was reported.
    let notice = bench.notices.recv_timeout(LIMIT).unwrap();
    assert_eq!(notice, VmNotice::Unplugged(VmDevice::Vf("a".to_owned())));
    let reason = format!("{{\"event\":\"SHUTDOWN\",\"data\":{{\"reason\":\"{long}\"}}}}\n");
    (&bench.qemu).write_all(reason.as_bytes()).unwrap();
    bench.report_end();
    assert!(bench.end().len() < 2000);
}

#[test]
fn operations_of_several_commands_have_a_time_limit() {
    let bench = Bench::new();
    let (shared, now) = (bench.shared(), Instant::now());
    assert_eq!(shared.check_time(now, "a query"), Ok(()));
    let started_at = now.checked_sub(OPERATION_LIMIT).unwrap();
    let error = shared.check_time(started_at, "a query").unwrap_err();
    assert_eq!(error.kind, VmErrorKind::Timeout);
    assert!(error.text.contains("VM web: QEMU did not complete `a query` within 60 s"), "{error}");
}

fn nic_names() -> Vec<String> {
    (0..16).map(|number| format!("nic{number}")).collect()
}

#[test]
fn queries_of_all_nics_have_one_time_limit_and_a_stalled_qemu_gets_no_more_of_them() {
    let bench = Bench::new();
    let (shared, names) = (bench.shared(), nic_names());
    let nics: Vec<&str> = names.iter().map(String::as_str).collect();
    let started_at = Instant::now();
    assert!(shared.query_standbys(&nics).is_empty());
    let first = started_at.elapsed();
    assert!(first < LIMIT, "{first:?}");
    // Further queries block no thread, and are not sent.
    let started_at = Instant::now();
    for _ in 0..1000 {
        assert!(shared.query_standbys(&nics).is_empty());
    }
    assert!(started_at.elapsed() < first, "{:?}", started_at.elapsed());
    assert_eq!(bench.commands(), ["qom-list"]);
    // QEMU is queried again when it has replied. It replies to each query slowly, so that the time
    // limit of all ends before the last reply.
    (&bench.qemu).write_all(b"{\"return\":[],\"id\":1}\n").unwrap();
    let qemu = bench.qemu.try_clone().unwrap();
    let replies = thread::spawn(move || {
        qemu.set_read_timeout(Some(LIMIT)).unwrap();
        let devices = json!([{"name": "vf-nic0", "type": "child<vfio-pci>"}]);
        let features = json!({"dev-features": ["VIRTIO_NET_F_STANDBY: standby"]});
        let status = json!({"guest-features": features, "status": {"statuses": []}});
        // Each command is one line. The caller sends the next one after the reply.
        for line in BufReader::new(&qemu).lines().map_while(Result::ok) {
            let command: serde_json::Value = serde_json::from_str(&line).unwrap();
            let value = match command["execute"].as_str() {
                Some("qom-list") => &devices,
                Some("x-query-virtio-status") => &status,
                other => panic!("{other:?}"),
            };
            let reply = format!("{}\n", json!({"return": value, "id": command["id"]}));
            thread::sleep(Duration::from_millis(600));
            // The connection may have ended meanwhile.
            if (&qemu).write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    });
    let deadline = Instant::now() + LIMIT;
    let standbys = loop {
        let standbys = shared.query_standbys(&nics);
        if !standbys.is_empty() {
            break standbys;
        }
        assert!(Instant::now() < deadline, "QEMU is not queried again");
        thread::sleep(Duration::from_millis(5));
    };
    assert!(standbys.len() < nics.len(), "{standbys:?}");
    let expected = NicStandbyState { is_negotiated: true, is_driver_ready: false, has_vf: true };
    assert_eq!(standbys["nic0"], expected);
    assert!(
        standbys.iter().all(|(nic, standby)| standby.has_vf == (nic == "nic0")),
        "{standbys:?}"
    );
    bench.qemu.shutdown(Shutdown::Both).unwrap();
    replies.join().unwrap();
}

/// Commands for which the socket has no room would end the connection, and with it the VM.
#[test]
fn a_qemu_that_does_not_reply_gets_a_bounded_number_of_commands() {
    let mut bench = Bench::new();
    let shared = bench.shared();
    // All callers at once, more than the limit.
    let barrier = Arc::new(Barrier::new(2 * COMMANDS_IN_FLIGHT_MAX));
    let (report, refusals) = channel();
    let callers: Vec<_> = (0..2 * COMMANDS_IN_FLIGHT_MAX)
        .map(|_| {
            let (shared, barrier) = (Arc::clone(&shared), Arc::clone(&barrier));
            let report = report.clone();
            thread::spawn(move || {
                barrier.wait();
                let error = shared.request(&Command::QueryStatus).unwrap_err();
                let _ = report.send(error);
            })
        })
        .collect();
    // The other callers have sent a command, and wait. One command remains for unplugged devices.
    for _ in 0..=COMMANDS_IN_FLIGHT_MAX {
        let error = refusals.recv_timeout(LIMIT).unwrap();
        assert_eq!(error.kind, VmErrorKind::Timeout);
        assert!(error.text.contains("VM web: QEMU has not replied to earlier commands"), "{error}");
    }
    assert_eq!(lock(&shared.reply_recipients).len(), COMMANDS_IN_FLIGHT_MAX - 1);
    let remove = || shared.send(&Command::QueryStatus, None, ReplyRecipient::Unplugging);
    assert!(remove().is_ok());
    assert_eq!(remove(), Err(SendError::Stalled));
    assert_eq!(bench.commands().len(), COMMANDS_IN_FLIGHT_MAX);
    bench.session = None;
    for caller in callers {
        caller.join().unwrap();
    }
}
