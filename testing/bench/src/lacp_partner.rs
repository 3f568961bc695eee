//! Partner of a team or bond: responds to LACPDUs with Suimon's implementation and ignores all
//! other frames. Every switch under test has the same partner.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use suimon_frame::MacAddr;
use suimon_netdev::NetDevices;
use suimon_ports::{ControlSocket, MemberDevices};
use suimon_quantity::Time;
use suimon_rig::{enter_namespace, wait_until};
use suimon_teaming::MemberId;
use suimon_teaming::lacp::{Activity, Lacp, LacpAction, LacpPortSpec, LacpSpec, Link, Timer};

use crate::wires::Wires;

const SYSTEM: MacAddr = MacAddr::new([2, 0xfa, 0, 0, 0, 1]);
const PRIORITY: u16 = 0x8000;
/// Speed and duplex mode that a veth device reports.
const LINK: Link = Link { speed_mbps: 10_000, full_duplex: true };
/// Interval at which the stop flag is checked.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time limit for an agreement of two ends that send LACPDUs every second.
const AGREEMENT_LIMIT: Duration = Duration::from_secs(20);

/// Running partner; dropping it stops it.
pub(crate) struct LacpPartner {
    state: Arc<SharedState>,
    links: usize,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the partner's thread and the benchmark.
#[derive(Default)]
struct SharedState {
    stop: AtomicBool,
    /// Number of links that collect and distribute.
    in_use: AtomicUsize,
    /// Error that ended the partner.
    failure: Mutex<Option<String>>,
}

impl LacpPartner {
    /// Starts a partner at the far ends of these wires, aggregated to one group.
    pub(crate) fn start(wires: &Wires) -> Self {
        let (namespace, ends) = (wires.far().name().to_owned(), wires.ends().to_vec());
        let (state, links) = (Arc::new(SharedState::default()), ends.len());
        let thread = {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                let played = enter_namespace(&namespace).and_then(|()| play(&ends, &state));
                *state.failure.lock().unwrap_or_else(PoisonError::into_inner) =
                    played.err().map(|error| format!("{error:#}"));
            })
        };
        Self { state, links, thread: Some(thread) }
    }

    /// Waits until both ends use all links.
    ///
    /// # Errors
    /// The links are not in use in time, or the partner has failed.
    pub(crate) fn wait_in_use(&self) -> Result<()> {
        wait_until("use of all links", AGREEMENT_LIMIT, || {
            if let Some(failure) =
                self.state.failure.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
            {
                bail!("the partner failed: {failure}");
            }
            Ok(self.state.in_use.load(Ordering::Relaxed) == self.links)
        })
    }
}

impl Drop for LacpPartner {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn play(devices: &[String], state: &SharedState) -> Result<()> {
    let host = NetDevices::new()?;
    let sockets = devices.iter().map(|device| host.open_control(device));
    let mut sockets = sockets.collect::<Result<Vec<_>, _>>()?;
    let started = Instant::now();
    let now = || Time::ZERO + started.elapsed();
    let mut lacp = group(devices.len(), now())?;
    let mut in_use = BTreeSet::new();
    while !state.stop.load(Ordering::Relaxed) {
        let mut actions = Vec::new();
        lacp.poll(now(), &mut actions);
        for action in actions {
            match action {
                LacpAction::Send { member, frame } => {
                    let socket = sockets.get_mut(member.0 as usize).context("no such link")?;
                    // A lost LACPDU is repeated by the next one.
                    let _ = socket.send(frame.bytes());
                }
                LacpAction::SetMemberUse { member, distributing: true, .. } => {
                    in_use.insert(member);
                }
                LacpAction::SetMemberUse { member, .. } => {
                    in_use.remove(&member);
                }
                LacpAction::ReportChurn { .. } | LacpAction::ReportLoopback { .. } => {}
            }
        }
        state.in_use.store(in_use.len(), Ordering::Relaxed);
        let due = lacp.next_deadline().map_or(LOOK_EVERY, |deadline| deadline.since(now()));
        wait(&sockets, due.min(LOOK_EVERY))?;
        for (member, socket) in (0..).map(MemberId).zip(&mut sockets) {
            // Frames other than LACPDUs have no effect.
            socket.receive(&mut |frame| {
                let _ = lacp.handle_frame(member, frame.bytes, now());
            })?;
        }
    }
    Ok(())
}

/// Creates the state of a group whose links are up.
fn group(links: usize, now: Time) -> Result<Lacp> {
    let mut lacp = Lacp::new(LacpSpec {
        system: SYSTEM,
        system_priority: PRIORITY,
        admin_key: 1,
        activity: Activity::Active,
        timer: Timer::Fast,
        individual_allowed: false,
        max_active: u8::try_from(links)?,
        mixed_speeds_allowed: true,
    })?;
    for (member, port) in (0..).map(MemberId).zip(1..).take(links) {
        let [head @ .., _] = SYSTEM.octets();
        let [a, b, c, d, e] = head;
        let mac = MacAddr::new([a, b, c, d, e, 1 + u8::try_from(port)?]);
        lacp.add_member(member, LacpPortSpec { port, priority: PRIORITY, mac }, now)?;
        lacp.handle_link(member, Some(LINK), now)?;
    }
    Ok(lacp)
}

/// Waits for a frame, at most `limit`.
fn wait(sockets: &[Box<dyn ControlSocket>], limit: Duration) -> Result<()> {
    let fds = sockets.iter().map(|socket| socket.wake_fd());
    let mut fds: Vec<PollFd<'_>> =
        fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    match poll(&mut fds, Some(&Timespec::try_from(limit)?)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
