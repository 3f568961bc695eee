//! Asks the kernel what a network device does itself, and how fast its link is.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use suimon_ports::{DeviceError, DeviceErrorKind, DeviceFeatures, LinkSpeed};

use crate::ethtool::{self, AnswerError};
use crate::explain::{error, host};
use crate::link::Link;

/// The kernel answers before `send` returns; this is for one that never does.
const PATIENCE: Duration = Duration::from_secs(1);
/// Answers to earlier questions that came too late, at most.
const DATAGRAMS_MAX: usize = 8;
/// Four sets of some seventy bits, most of them unnamed, are about 5 KB.
const DATAGRAM_BYTES: usize = 64 << 10;

/// Asks about devices of this process' own namespace, where uplinks live. May be
/// used from any thread; it waits for the kernel's lock of all network settings.
#[derive(Default)]
pub(crate) struct DeviceQuery {
    /// `None` until somebody asks, and after a failure.
    asker: Mutex<Option<Asker>>,
}

struct Asker {
    /// Takes messages of the kernel only.
    socket: OwnedFd,
    family: u16,
    /// The group of changes; `None` if the kernel names none.
    monitor: Option<u32>,
    sequence: u32,
}

/// Where the kernel tells of changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Monitor {
    pub(crate) family: u16,
    pub(crate) group: u32,
}

/// Why there is no answer.
enum AskError {
    /// There is no way to ask.
    Unable(Box<Self>),
    Socket(Errno),
    Answer(AnswerError),
}

impl AskError {
    fn of_opening(self) -> Self {
        Self::Unable(Box::new(self))
    }
}

impl DeviceQuery {
    /// What the kernel says of `device` now.
    ///
    /// # Errors
    /// There is no such device (`Missing`), or a kernel that cannot be asked
    /// (`Unsupported`: before 5.6, or built without `CONFIG_ETHTOOL_NETLINK`).
    pub(crate) fn features(&self, device: &str) -> Result<DeviceFeatures, DeviceError> {
        self.ask(|asker| asker.features(device)).map_err(|cause| explain(device, &cause))
    }

    /// How fast the kernel says the link of a device is now, whether or not it is up.
    ///
    /// # Errors
    /// There is no such device, or the kernel does not answer.
    pub(crate) fn speed(&self, index: u32, device: &str) -> Result<LinkSpeed, DeviceError> {
        match self.ask(|asker| asker.speed(index)) {
            Ok(speed) => Ok(speed),
            Err(AskError::Answer(AnswerError::Refused(Errno::OPNOTSUPP))) => {
                Ok(LinkSpeed::default())
            }
            // An older kernel, or one that has not this way.
            Err(_) => Link::new(device)?.speed(),
        }
    }

    /// Where the kernel tells of changes; `None` if it does not.
    pub(crate) fn monitor(&self) -> Option<Monitor> {
        let ask = self.ask(|asker| Ok((asker.family, asker.monitor)));
        let (family, group) = ask.ok()?;
        Some(Monitor { family, group: group? })
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&mut Asker) -> Result<T, AskError>,
    ) -> Result<T, AskError> {
        let mut asker = self.asker.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match asker.take() {
            Some(open) => open,
            None => Asker::open().map_err(AskError::of_opening)?,
        };
        let answer = question(asker.insert(open));
        if matches!(answer, Err(AskError::Socket(_))) {
            *asker = None;
        }
        answer
    }
}

impl Asker {
    fn open() -> Result<Self, AskError> {
        let protocol = Some(netlink::GENERIC);
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)
            .map_err(AskError::Socket)?;
        connect(&socket, &SocketAddrNetlink::new(0, 0)).map_err(AskError::Socket)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).map_err(AskError::Socket)?;
        let mut asker = Self { socket, family: 0, monitor: None, sequence: 0 };
        let read = |datagram: &[u8], sequence| {
            let monitor = ethtool::monitor_group(datagram, sequence).ok();
            Ok((ethtool::family(datagram, sequence)?, monitor))
        };
        (asker.family, asker.monitor) = asker.ask(ethtool::family_request, read)?;
        Ok(asker)
    }

    fn speed(&mut self, index: u32) -> Result<LinkSpeed, AskError> {
        let family = self.family;
        self.ask(
            |sequence| ethtool::speed_request(family, sequence, index),
            |datagram, sequence| ethtool::speed(datagram, sequence, family),
        )
    }

    fn features(&mut self, device: &str) -> Result<DeviceFeatures, AskError> {
        let family = self.family;
        self.ask(
            |sequence| ethtool::features_request(family, sequence, device),
            |datagram, sequence| ethtool::features(datagram, sequence, family),
        )
    }

    fn ask<T>(
        &mut self,
        request: impl Fn(u32) -> Vec<u8>,
        read: impl Fn(&[u8], u32) -> Result<T, AnswerError>,
    ) -> Result<T, AskError> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.socket, &request(self.sequence), SendFlags::empty())
            .map_err(AskError::Socket)?;
        let mut room = vec![0; DATAGRAM_BYTES];
        for _ in 0..DATAGRAMS_MAX {
            let (len, _) = match recv(&self.socket, &mut *room, RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                received => received.map_err(AskError::Socket)?,
            };
            match read(room.get(..len).unwrap_or_default(), self.sequence) {
                // It may be the answer to an earlier question.
                Err(AnswerError::NotAnAnswer) => {}
                answer => return answer.map_err(AskError::Answer),
            }
        }
        Err(AskError::Answer(AnswerError::NotAnAnswer))
    }
}

fn explain_open(cause: &AskError) -> DeviceError {
    match cause {
        AskError::Answer(AnswerError::Refused(Errno::NOENT)) => error(
            DeviceErrorKind::Unsupported,
            "device",
            "this kernel cannot be asked: it is older than 5.6 or has no ETHTOOL_NETLINK",
        ),
        AskError::Answer(cause) => {
            error(DeviceErrorKind::Host, "device", format!("looking for ethtool: {cause}"))
        }
        AskError::Socket(errno) => {
            host("device", "opening a generic netlink socket", &(*errno).into())
        }
        AskError::Unable(cause) => explain_open(cause),
    }
}

fn explain(device: &str, cause: &AskError) -> DeviceError {
    let what = format!("asking for the features of device {device}");
    match cause {
        AskError::Unable(cause) => explain_open(cause),
        AskError::Socket(errno) | AskError::Answer(AnswerError::Refused(errno)) => {
            host("device", &what, &(*errno).into())
        }
        AskError::Answer(cause) => {
            error(DeviceErrorKind::Host, "device", format!("{what}: {cause}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use suimon_ports::DeviceFeature;

    use super::*;
    use crate::namespace::Namespace;
    use crate::testing::TestNetns;

    #[test]
    fn the_kernel_tells_what_ethtool_switches() {
        let inside = TestNetns::new();
        inside.run("ip link add upstream0 type veth peer name upstream1");
        let namespace = Namespace::open(Some(inside.name())).unwrap();
        // The socket belongs to the namespace in which it is made.
        let query = DeviceQuery::default();
        let ask = || namespace.run(|| query.features("upstream0")).unwrap();
        let word = |features: &DeviceFeatures, feature| features.state(feature).word();

        let before = ask();
        assert_eq!(before.iter().count(), DeviceFeature::ALL.len(), "{before:?}");
        assert_eq!(word(&before, DeviceFeature::TxTcp4), "on");
        assert_eq!(word(&before, DeviceFeature::TxTcp6), "on");
        assert_eq!(word(&before, DeviceFeature::RxLro), "off [fixed]");
        inside.run("ethtool -K upstream0 tx-tcp-segmentation off gro on");
        let after = ask();
        assert_eq!(word(&after, DeviceFeature::TxTcp4), "off");
        assert_eq!(word(&after, DeviceFeature::TxTcp6), "on");
        assert_eq!(word(&after, DeviceFeature::RxGro), "on");

        // Segmentation without checksums is wanted but not had.
        inside.run("ethtool -K upstream0 tx-tcp-segmentation on tx off");
        let starved = ask();
        assert_eq!(word(&starved, DeviceFeature::TxChecksum), "off");
        assert_eq!(word(&starved, DeviceFeature::TxTcp4), "off [requested on]");
    }

    #[test]
    fn a_device_that_is_not_there_is_missing_and_others_are_told_of_still() {
        let inside = TestNetns::new();
        inside.run("ip link add upstream0 type veth peer name upstream1");
        let namespace = Namespace::open(Some(inside.name())).unwrap();
        let query = DeviceQuery::default();
        let error = namespace.run(|| query.features("upstream7")).unwrap_err();
        assert_eq!((error.kind, error.field), (DeviceErrorKind::Missing, "device"));
        assert!(error.detail.contains("upstream7"), "{}", error.detail);
        assert!(namespace.run(|| query.features("upstream1")).is_ok());
    }
}
