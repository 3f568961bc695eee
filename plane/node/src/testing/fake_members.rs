//! Control sockets of team members, whose remote ends are the tests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{
    CONTROL_FRAMES_PER_CALL_MAX, ControlError, ControlFrame, ControlSocket, DeviceError,
    DeviceErrorKind, LinkProperties, MemberDevices, NextReceive,
};

use crate::teams::WakeEvent;
use crate::testing::device_error;

/// Control sockets of one host. Clones share the state.
#[derive(Clone, Default)]
pub(crate) struct FakeMembers(Arc<Mutex<BTreeMap<String, Line>>>);

#[derive(Default)]
struct Line {
    /// Frames that have not been received yet.
    arrived: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    /// Number of sockets opened so far.
    opened: u64,
    /// Open sockets, by the number of their opening, with the event that wakes their readers.
    open: BTreeMap<u64, Arc<WakeEvent>>,
    /// Open sockets whose device was deleted.
    disconnected: BTreeSet<u64>,
    is_refused: bool,
    is_full: bool,
}

impl FakeMembers {
    fn lines(&self) -> MutexGuard<'_, BTreeMap<String, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` with the control sockets and frames of a device.
    fn with_line<T>(&self, device: &str, act: impl FnOnce(&mut Line) -> T) -> T {
        act(self.lines().entry(device.to_owned()).or_default())
    }

    /// Delivers a frame to the sockets of a device.
    pub(crate) fn arrive(&self, device: &str, frame: &[u8]) {
        self.with_line(device, |line| {
            line.arrived.push_back(frame.to_vec());
            line.open.values().for_each(|wake| wake.wake());
        });
    }

    /// Returns the frames sent on a device since the last call.
    pub(crate) fn take_sent(&self, device: &str) -> Vec<Vec<u8>> {
        self.with_line(device, |line| std::mem::take(&mut line.sent))
    }

    /// Returns the number of frames that have not been received yet.
    pub(crate) fn waiting(&self, device: &str) -> usize {
        self.with_line(device, |line| line.arrived.len())
    }

    pub(crate) fn open_sockets(&self, device: &str) -> usize {
        self.with_line(device, |line| line.open.len())
    }

    /// Sets whether sockets on a device cannot be opened.
    pub(crate) fn refuse(&self, device: &str, is_refused: bool) {
        self.with_line(device, |line| line.is_refused = is_refused);
    }

    /// Sets whether the device's send queue is full.
    pub(crate) fn fill(&self, device: &str, is_full: bool) {
        self.with_line(device, |line| line.is_full = is_full);
    }

    /// Simulates that the device was deleted and created again: its open sockets fail.
    pub(crate) fn replace_device(&self, device: &str) {
        self.with_line(device, |line| {
            line.disconnected = line.open.keys().copied().collect();
            line.open.values().for_each(|wake| wake.wake());
        });
    }
}

impl MemberDevices for FakeMembers {
    fn open_control(&self, device: &str) -> Result<Box<dyn ControlSocket>, DeviceError> {
        let wake = Arc::new(WakeEvent::new().unwrap());
        let number = self.with_line(device, |line| {
            if line.is_refused {
                return Err(device_error(DeviceErrorKind::Denied));
            }
            line.opened += 1;
            line.open.insert(line.opened, wake.clone());
            Ok(line.opened)
        })?;
        Ok(Box::new(FakeSocket { host: self.clone(), device: device.to_owned(), number, wake }))
    }

    fn link_properties(&self, _device: &str) -> Result<LinkProperties, DeviceError> {
        Err(device_error(DeviceErrorKind::Unsupported))
    }
}

struct FakeSocket {
    host: FakeMembers,
    device: String,
    number: u64,
    wake: Arc<WakeEvent>,
}

impl FakeSocket {
    fn check(&self) -> Result<(), ControlError> {
        let is_disconnected =
            self.host.with_line(&self.device, |line| line.disconnected.contains(&self.number));
        if is_disconnected {
            Err(ControlError::DeviceMissing { device: self.device.clone() })
        } else {
            Ok(())
        }
    }
}

impl ControlSocket for FakeSocket {
    fn receive(
        &mut self,
        handle_frame: &mut dyn FnMut(ControlFrame<'_>),
    ) -> Result<NextReceive, ControlError> {
        self.check()?;
        let frames: Vec<Vec<u8>> = self.host.with_line(&self.device, |line| {
            let number = line.arrived.len().min(CONTROL_FRAMES_PER_CALL_MAX);
            line.arrived.drain(..number).collect()
        });
        for frame in &frames {
            handle_frame(ControlFrame { bytes: frame, wire_bytes: frame.len() });
        }
        if frames.len() == CONTROL_FRAMES_PER_CALL_MAX {
            return Ok(NextReceive::AfterPause);
        }
        self.wake.drain();
        Ok(NextReceive::WhenReadable)
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), ControlError> {
        self.check()?;
        self.host.with_line(&self.device, |line| {
            if line.is_full {
                return Err(ControlError::TransmitQueueFull { device: self.device.clone() });
            }
            line.sent.push(frame.to_vec());
            Ok(())
        })
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    fn dropped_frames(&mut self) -> u64 {
        0
    }

    fn reopen(&mut self) -> Result<(), DeviceError> {
        Err(device_error(DeviceErrorKind::Unsupported))
    }
}

impl Drop for FakeSocket {
    fn drop(&mut self) {
        self.host.with_line(&self.device, |line| {
            line.open.remove(&self.number);
            line.disconnected.remove(&self.number);
        });
    }
}
