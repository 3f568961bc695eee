//! Network interfaces of this host and the system clock.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::socket::Socket;
use super::{Arrival, World};

/// Interfaces of this host that are connected to the device.
#[derive(Debug)]
pub(crate) struct Packets {
    names: Vec<String>,
    sockets: Vec<Socket>,
    started: Instant,
    /// Shell command that sets a link down or up instead of `ip link`.
    link_command: Option<String>,
    /// Interface to check first at the next receive, so that a busy interface does not starve
    /// others.
    turn: usize,
}

impl Packets {
    /// Opens interfaces. The shell runs `link_command` with `$INTERFACE` and `$STATE` (`up` or
    /// `down`).
    ///
    /// # Errors
    /// An interface does not exist, or the process may not open packet sockets.
    pub(crate) fn open(names: &[String], link_command: Option<String>) -> Result<Self> {
        let sockets = names
            .iter()
            .map(|name| Socket::open(name).with_context(|| format!("cannot open {name}")))
            .collect::<Result<_>>()?;
        let started = Instant::now();
        Ok(Self { names: names.to_vec(), sockets, started, link_command, turn: 0 })
    }

    /// Returns a pending frame of any interface, without blocking.
    fn take(&mut self) -> Result<Option<Arrival>> {
        let count = self.sockets.len();
        for offset in 0..count {
            let interface = (self.turn + offset) % count;
            let received = self.sockets[interface]
                .receive()
                .with_context(|| format!("receiving from {}", self.names[interface]))?;
            if let Some(frame) = received {
                self.turn = interface + 1;
                return Ok(Some(Arrival { interface, time: self.now(), frame }));
            }
        }
        Ok(None)
    }
}

impl World for Packets {
    fn interfaces(&self) -> usize {
        self.sockets.len()
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn send(&mut self, interface: usize, frame: &[u8]) -> Result<()> {
        let result = self.sockets[interface].send(frame);
        result.with_context(|| format!("sending on {}", self.names[interface]))
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Arrival>> {
        loop {
            if let Some(arrival) = self.take()? {
                return Ok(Some(arrival));
            }
            let remaining = until.saturating_sub(self.now());
            if remaining.is_zero() {
                return Ok(None);
            }
            let mut poll_fds: Vec<PollFd<'_>> =
                self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            match poll(&mut poll_fds, Some(&Timespec::try_from(remaining)?)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno).context("waiting for frames"),
            }
        }
    }

    fn set_link(&mut self, interface: usize, up: bool) -> Result<()> {
        let name = &self.names[interface];
        let state = if up { "up" } else { "down" };
        let status = match &self.link_command {
            None => Command::new("ip").args(["link", "set", "dev", name, state]).status(),
            Some(command) => Command::new("sh")
                .args(["-c", command])
                .env("INTERFACE", name)
                .env("STATE", state)
                .status(),
        };
        let status = status.context("cannot run the command that sets a link")?;
        ensure!(status.success(), "cannot set link {name} {state}");
        Ok(())
    }
}
