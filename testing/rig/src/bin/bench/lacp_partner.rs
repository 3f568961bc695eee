//! The other end of a team or bond: it answers LACPDUs as our own implementation does and
//! takes no notice of anything else. The switch under test speaks to the same partner
//! whoever made it.

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
use suimon_rig::{enter_namespace, until};
use suimon_teaming::MemberId;
use suimon_teaming::lacp::{Action, Activity, Lacp, LacpSpec, Link, PortSpec, Timer};

use crate::wires::Wires;

const SYSTEM: MacAddr = MacAddr::new([2, 0xfa, 0, 0, 0, 1]);
const PRIORITY: u16 = 0x8000;
/// What a pair of veth says of itself.
const LINK: Link = Link { speed_mbps: 10_000, full_duplex: true };
/// How often it is asked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// By then two ends that speak every second have agreed.
const AGREEMENT_LIMIT: Duration = Duration::from_secs(20);

/// A partner at work; dropping it ends it.
pub(crate) struct LacpPartner {
    told: Arc<Told>,
    links: usize,
    thread: Option<JoinHandle<()>>,
}

/// What passes between the threads.
#[derive(Default)]
struct Told {
    stop: AtomicBool,
    /// Links that collect and distribute.
    in_use: AtomicUsize,
    /// Why it ended by itself.
    failure: Mutex<Option<String>>,
}

impl LacpPartner {
    /// Speaks at the far ends of all these wires, of which it makes one group.
    pub(crate) fn start(wires: &Wires) -> Self {
        let (namespace, ends) = (wires.far().name().to_owned(), wires.ends().to_vec());
        let (told, links) = (Arc::new(Told::default()), ends.len());
        let thread = {
            let told = Arc::clone(&told);
            thread::spawn(move || {
                let played = enter_namespace(&namespace).and_then(|()| play(&ends, &told));
                *told.failure.lock().unwrap_or_else(PoisonError::into_inner) =
                    played.err().map(|error| format!("{error:#}"));
            })
        };
        Self { told, links, thread: Some(thread) }
    }

    /// Returns when both ends use all links.
    ///
    /// # Errors
    /// They do not in time, or the partner has failed.
    pub(crate) fn wait_in_use(&self) -> Result<()> {
        until("use of all links", AGREEMENT_LIMIT, || {
            if let Some(failure) =
                self.told.failure.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
            {
                bail!("the partner failed: {failure}");
            }
            Ok(self.told.in_use.load(Ordering::Relaxed) == self.links)
        })
    }
}

impl Drop for LacpPartner {
    fn drop(&mut self) {
        self.told.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn play(devices: &[String], told: &Told) -> Result<()> {
    let host = NetDevices::new()?;
    let sockets = devices.iter().map(|device| host.open_control(device));
    let mut sockets = sockets.collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let now = || Time::ZERO + began.elapsed();
    let mut lacp = group(devices.len(), now())?;
    let mut in_use = BTreeSet::new();
    while !told.stop.load(Ordering::Relaxed) {
        let mut actions = Vec::new();
        lacp.poll(now(), &mut actions);
        for action in actions {
            match action {
                Action::Send { member, frame } => {
                    let socket = sockets.get_mut(member.0 as usize).context("no such link")?;
                    // A link that is down or full hears the next one.
                    let _ = socket.send(frame.bytes());
                }
                Action::Use { member, distributing: true, .. } => {
                    in_use.insert(member);
                }
                Action::Use { member, .. } => {
                    in_use.remove(&member);
                }
                Action::Churn { .. } | Action::Loopback { .. } => {}
            }
        }
        told.in_use.store(in_use.len(), Ordering::Relaxed);
        let due = lacp.next_deadline().map_or(LOOK_EVERY, |deadline| deadline.since(now()));
        wait(&sockets, due.min(LOOK_EVERY))?;
        for (member, socket) in (0..).map(MemberId).zip(&mut sockets) {
            // What is no LACPDU has no other effect.
            socket.receive(&mut |frame| {
                let _ = lacp.handle_frame(member, frame.bytes, now());
            })?;
        }
    }
    Ok(())
}

/// Links of one group, all up.
fn group(links: usize, now: Time) -> Result<Lacp> {
    let mut lacp = Lacp::new(LacpSpec {
        system: SYSTEM,
        system_priority: PRIORITY,
        admin_key: 1,
        activity: Activity::Active,
        timer: Timer::Fast,
        individual_allowed: false,
        max_active: u8::try_from(links)?,
        mixed_speeds: true,
    })?;
    for (member, port) in (0..).map(MemberId).zip(1..).take(links) {
        let [head @ .., _] = SYSTEM.octets();
        let [a, b, c, d, e] = head;
        let mac = MacAddr::new([a, b, c, d, e, 1 + u8::try_from(port)?]);
        lacp.add_member(member, PortSpec { port, priority: PRIORITY, mac }, now)?;
        lacp.handle_link(member, Some(LINK), now)?;
    }
    Ok(lacp)
}

/// Until a frame waits, or so long.
fn wait(sockets: &[Box<dyn ControlSocket>], limit: Duration) -> Result<()> {
    let fds = sockets.iter().map(|socket| socket.wake_fd());
    let mut fds: Vec<PollFd<'_>> =
        fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    match poll(&mut fds, Some(&Timespec::try_from(limit)?)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
