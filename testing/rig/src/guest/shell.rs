//! Commands in a guest, independent of how it was started.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::command::Output;
use crate::guest::channel::Channel;

/// Default time limit of a command in a guest.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// Guest that executes commands.
#[derive(Debug)]
pub struct GuestShell {
    name: String,
    channel: Channel,
}

impl GuestShell {
    pub(crate) fn new(name: &str, channel: Channel) -> Self {
        Self { name: name.to_owned(), channel }
    }

    /// Continues over another line to the same guest.
    pub(crate) fn connect_again(&mut self, socket: &Path) -> Result<()> {
        self.channel.connect_again(socket)
    }

    /// Waits until the guest accepts commands.
    pub(crate) fn wait_ready(
        &mut self,
        limit: Duration,
        check_process: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        self.channel.wait_ready(limit, check_process)
    }

    /// Runs one line of shell and returns its result.
    ///
    /// # Errors
    /// The guest has ended, or takes longer than `limit`.
    pub fn run_any(&mut self, command: &str, limit: Duration) -> Result<Output> {
        self.channel.run(command, limit)
    }

    /// Runs one line of shell, which must succeed, and returns its output.
    ///
    /// # Errors
    /// The command failed, with its output.
    pub fn run(&mut self, command: &str) -> Result<String> {
        let output = self.run_any(command, COMMAND_LIMIT)?;
        if !output.is_ok() {
            bail!(
                "`{command}` in guest {} failed with {}: {}",
                self.name,
                output.code,
                output.stdout
            );
        }
        Ok(output.stdout)
    }

    /// Loads a kernel module that is not loaded at boot, such as `bonding`, with these parameters.
    ///
    /// # Errors
    /// The guest does not have the module.
    pub fn load(&mut self, module: &str, parameters: &str) -> Result<()> {
        let needs = format!("for i in $(cat /modules/{module}.needs); do insmod /modules/$i; done");
        self.run(&format!("{needs}; insmod /modules/{module}.ko {parameters}"))?;
        Ok(())
    }

    /// Starts one line of shell; [`GuestShell::finish`] waits for its end.
    ///
    /// # Errors
    /// The guest has ended.
    pub fn begin(&mut self, command: &str) -> Result<()> {
        self.channel.send(command)
    }

    /// Returns the result of the line that was started last.
    ///
    /// # Errors
    /// The guest has ended, or takes longer than `limit`.
    pub fn finish(&mut self, limit: Duration) -> Result<Output> {
        self.channel.answer(limit)
    }

    /// Assigns an address like `10.0.0.1/24` to a NIC and sets it up.
    ///
    /// # Errors
    /// The guest has no such NIC.
    pub fn address(&mut self, device: &str, address: &str) -> Result<()> {
        self.run(&format!("ip link set {device} up && ip addr add {address} dev {device}"))?;
        Ok(())
    }

    /// Returns true once `address` replies to a ping, false after 60 pings without reply, of one
    /// second each. Use [`Self::cannot_reach`] for addresses that must not reply.
    ///
    /// # Errors
    /// The guest has ended.
    pub fn reaches(&mut self, address: &str) -> Result<bool> {
        self.pings(address, 60)
    }

    /// Returns true if `address` replies to none of five pings.
    ///
    /// # Errors
    /// The guest has ended.
    pub fn cannot_reach(&mut self, address: &str) -> Result<bool> {
        Ok(!self.pings(address, 5)?)
    }

    fn pings(&mut self, address: &str, count: u32) -> Result<bool> {
        let ping = format!("ping -c 1 -W 1 {address} && exit 0");
        let pings = format!("i=0; while [ $i -lt {count} ]; do {ping}; i=$((i + 1)); done; exit 1");
        // Under load a ping takes longer than the second that it waits.
        Ok(self.run_any(&pings, 2 * COMMAND_LIMIT)?.is_ok())
    }
}
