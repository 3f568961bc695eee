//! Commands of a VM's driver to the control thread.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use crate::command::Command;

/// Interval between attempts to send commands to a full queue.
const SEND_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Sender of commands from a VM's driver to the control thread. Never blocks, because the control
/// thread waits for the end of drivers. Commands that its queue has no room for are sent later, in
/// order.
///
/// The number of these commands is bounded: a driver has at most one pending request to delete its
/// VM, and one request to open each of the VM's disks.
pub(super) struct ControlSender {
    control: SyncSender<Command>,
    unsent: VecDeque<Command>,
    /// Time of the next attempt; `None` if all commands are sent.
    pub(super) retry_at: Option<Instant>,
}

impl ControlSender {
    pub(super) fn new(control: SyncSender<Command>) -> Self {
        Self { control, unsent: VecDeque::new(), retry_at: None }
    }

    /// Sends a command, now or as soon as the queue has room.
    pub(super) fn send(&mut self, command: Command) {
        self.unsent.push_back(command);
        self.send_unsent();
    }

    /// Wakes the control thread, which also runs periodically.
    pub(super) fn wake(&self) {
        let _ = self.control.try_send(Command::Wake);
    }

    /// Sends the commands that are left, if the next attempt is due.
    pub(super) fn poll(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|deadline| deadline <= now) {
            self.send_unsent();
        }
    }

    fn send_unsent(&mut self) {
        self.retry_at = None;
        while let Some(command) = self.unsent.pop_front() {
            match self.control.try_send(command) {
                // A control thread that has ended needs no commands.
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                Err(TrySendError::Full(command)) => {
                    self.unsent.push_front(command);
                    self.retry_at = Some(Instant::now() + SEND_RETRY_INTERVAL);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn bring_back(disk: &str) -> Command {
        Command::ReturnDiskToService { disk: disk.parse().unwrap(), failure: None }
    }

    #[test]
    fn commands_to_a_full_queue_are_sent_later_in_order() {
        let (sender, receiver) = sync_channel(1);
        let mut line = ControlSender::new(sender);
        line.wake();
        line.send(bring_back("a"));
        line.send(bring_back("b"));
        line.wake();
        let mut disks = Vec::new();
        while let Some(retry_at) = line.retry_at {
            line.poll(retry_at - Duration::from_millis(1));
            match receiver.try_recv() {
                Ok(Command::ReturnDiskToService { disk, .. }) => disks.push(disk.to_string()),
                Ok(_) => assert!(disks.is_empty()),
                Err(error) => panic!("{error}"),
            }
            assert!(receiver.try_recv().is_err(), "nothing is sent before it is due");
            line.poll(retry_at);
        }
        assert!(
            matches!(receiver.try_recv(), Ok(Command::ReturnDiskToService { disk, .. }) if disk.as_str() == "b")
        );
        assert_eq!(disks, ["a"]);
        drop(receiver);
        line.send(bring_back("c"));
        assert_eq!(line.retry_at, None);
    }
}
