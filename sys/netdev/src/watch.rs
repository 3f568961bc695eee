//! Thread that monitors the links of all devices, in all network namespaces in use.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};
use suimon_netif::netlink::{LinkState, link_messages, state_request};
use suimon_ports::{DeviceError, LinkSpeed, PortObserver};
use suimon_quantity::PortId;

use crate::device_query::DeviceQuery;
use crate::errors::host_error;
use crate::ethtool_monitor::{ChangedDevices, EthtoolMonitor};
use crate::namespace::{Namespace, NamespaceId};
use crate::namespace_names::{NO_WATCH_WARNING, NamespaceNameWatch};
use crate::watched_link::{WatchSubject, WatchedLink, lock};

/// Receive buffer size in bytes. The kernel's datagrams have at most 32 KiB in a dump and less
/// otherwise.
const DATAGRAM_BYTES: usize = 32 << 10;
/// Maximum number of sockets processed per iteration.
const EVENTS_MAX: usize = 8;
/// Maximum number of datagrams read from a socket per iteration.
const DATAGRAMS_PER_ROUND: usize = 64;
const TOKEN_STOP: u64 = u64::MAX;
const TOKEN_NAMES: u64 = u64::MAX - 1;
const TOKEN_SPEEDS: u64 = u64::MAX - 2;

/// Thread that monitors links; ends when this value is dropped.
pub(crate) struct LinkWatcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Monitoring of one device's link; ends when this value is dropped.
pub(crate) struct LinkWatch {
    shared: Arc<Shared>,
    link: Arc<WatchedLink>,
}

struct Shared {
    epoll: OwnedFd,
    stop: OwnedFd,
    /// Watch of namespace names; `None` if it could not be created. Then only the removal of a name
    /// is not detected.
    names: Option<NamespaceNameWatch>,
    /// Query of speeds in this process's namespace.
    query: Arc<DeviceQuery>,
    /// Notifications of changed speeds; `None` if the kernel has none. Speeds are then queried only
    /// when a link changes.
    speeds: Option<EthtoolMonitor>,
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    next_token: u64,
    sockets: BTreeMap<u64, Arc<NetlinkSocket>>,
    links: Vec<Arc<WatchedLink>>,
}

struct NetlinkSocket {
    namespace: NamespaceId,
    fd: OwnedFd,
}

impl LinkWatcher {
    /// Starts the thread.
    ///
    /// # Errors
    /// No file descriptor or thread is available.
    pub(crate) fn new(query: Arc<DeviceQuery>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &stop, EventData::new_u64(TOKEN_STOP), EventFlags::IN)?;
        let names = NamespaceNameWatch::new();
        match &names {
            Ok(names) => {
                epoll::add(&epoll, names, EventData::new_u64(TOKEN_NAMES), EventFlags::IN)?;
            }
            Err(errno) => tracing::warn!(%errno, "{NO_WATCH_WARNING}"),
        }
        let names = names.ok();
        let speeds = EthtoolMonitor::new(&query);
        match &speeds {
            Ok(speeds) => {
                let token = EventData::new_u64(TOKEN_SPEEDS);
                epoll::add(&epoll, speeds, token, EventFlags::IN)?;
            }
            Err(error) => tracing::info!(%error, "changes of link speed are not monitored"),
        }
        let (speeds, registry) = (speeds.ok(), Mutex::default());
        let shared = Arc::new(Shared { epoll, stop, names, query, speeds, registry });
        let for_thread = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("link-watch".to_owned()).spawn(move || for_thread.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Monitors the link of a device of `namespace`. The observer soon receives the current state,
    /// and later each change.
    ///
    /// # Errors
    /// No socket could be opened in the namespace.
    pub(crate) fn watch(
        &self,
        namespace: &Namespace,
        subject: WatchSubject<'_>,
        port: PortId,
        observer: Arc<dyn PortObserver>,
    ) -> Result<LinkWatch, DeviceError> {
        let index = subject.index;
        let mut registry = self.shared.registry();
        let token = self.shared.socket_in(&mut registry, namespace)?;
        let link = Arc::new(WatchedLink::new(token, namespace, subject, port, observer));
        registry.links.push(Arc::clone(&link));
        if let Some(socket) = registry.sockets.get(&token) {
            socket.request(Some(index));
        }
        drop(registry);
        if namespace.name().is_some() {
            self.shared.names.iter().for_each(NamespaceNameWatch::watch);
            // The name may have been removed before it was watched.
            link.check_name();
        }
        Ok(LinkWatch { shared: Arc::clone(&self.shared), link })
    }
}

impl Drop for LinkWatcher {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // An observer may drop the last owner on the monitoring thread itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl LinkWatch {
    /// Returns the last state received.
    pub(crate) fn state(&self) -> LinkState {
        self.link.state()
    }

    /// Returns the last speed reported.
    pub(crate) fn speed(&self) -> LinkSpeed {
        self.link.speed()
    }
}

impl Drop for LinkWatch {
    fn drop(&mut self) {
        let mut registry = self.shared.registry();
        registry.links.retain(|link| !Arc::ptr_eq(link, &self.link));
        let token = self.link.token;
        if !registry.links.iter().any(|link| link.token == token) {
            // The monitoring thread may still hold the socket, so it is removed from the epoll set
            // explicitly.
            if let Some(socket) = registry.sockets.remove(&token) {
                let _ = epoll::delete(&self.shared.epoll, &socket.fd);
            }
        }
    }
}

impl Shared {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    fn socket_in(
        &self,
        registry: &mut Registry,
        namespace: &Namespace,
    ) -> Result<u64, DeviceError> {
        let existing =
            registry.sockets.iter().find(|(_, socket)| socket.namespace == namespace.id());
        if let Some((token, _)) = existing {
            return Ok(*token);
        }
        let fail = |errno: Errno| host_error("netns", "subscribing to link changes", &errno.into());
        let fd = namespace.run(|| open_socket().map_err(fail))?;
        let token = registry.next_token;
        registry.next_token += 1;
        epoll::add(&self.epoll, &fd, EventData::new_u64(token), EventFlags::IN).map_err(fail)?;
        registry.sockets.insert(token, Arc::new(NetlinkSocket { namespace: namespace.id(), fd }));
        Ok(token)
    }

    fn run(&self) {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut datagram = vec![0; DATAGRAM_BYTES];
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    tracing::error!(%errno, "link changes are not monitored any more");
                    return;
                }
            }
            for event in &events {
                let token = event.data.u64();
                if token == TOKEN_STOP {
                    return;
                }
                if token == TOKEN_NAMES {
                    self.names.iter().for_each(NamespaceNameWatch::clear);
                    let links = self.registry().links.clone();
                    links.iter().for_each(|link| link.check_name());
                    continue;
                }
                if token == TOKEN_SPEEDS {
                    self.read_speeds(&mut datagram);
                    continue;
                }
                let socket = self.registry().sockets.get(&token).cloned();
                if let Some(socket) = socket {
                    self.read(token, &socket, &mut datagram);
                }
            }
        }
    }

    fn read(&self, token: u64, socket: &NetlinkSocket, datagram: &mut [u8]) {
        for _ in 0..DATAGRAMS_PER_ROUND {
            match recv(&socket.fd, &mut *datagram, RecvFlags::DONTWAIT) {
                Ok((len, _)) => self.notify(token, datagram.get(..len).unwrap_or_default()),
                // Messages were lost: all states are requested again.
                Err(Errno::NOBUFS) => socket.request(None),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn read_speeds(&self, datagram: &mut [u8]) {
        let Some(speeds) = &self.speeds else { return };
        for _ in 0..DATAGRAMS_PER_ROUND {
            let Some(changed) = speeds.read(datagram) else { return };
            let concerns = |link: &&Arc<WatchedLink>| match &changed {
                ChangedDevices::Indices(indices) => indices.contains(&link.index),
                ChangedDevices::All => true,
            };
            let links: Vec<_> = self.registry().links.iter().filter(concerns).cloned().collect();
            for link in links {
                link.notify_link(&self.query);
            }
        }
    }

    fn notify(&self, token: u64, datagram: &[u8]) {
        for message in link_messages(datagram) {
            let links: Vec<_> = {
                let registry = self.registry();
                let concerned = registry.links.iter();
                concerned
                    .filter(|link| link.token == token && link.index == message.index)
                    .cloned()
                    .collect()
            };
            // The lock is not held: an observer may open or drop a device.
            for link in links {
                link.handle_event(&message.event);
                link.check_device_name(message.name.as_deref());
                link.notify_link(&self.query);
            }
        }
    }
}

impl NetlinkSocket {
    /// Requests the state of the device with this interface index, or of all devices if it is
    /// `None`. The reply arrives as any other message.
    fn request(&self, index: Option<u32>) {
        // Fails only if the kernel has no memory, or during a dump, which contains the reply too.
        if let Err(errno) = send(&self.fd, &state_request(index), SendFlags::DONTWAIT) {
            tracing::warn!(%errno, "reading the state of links");
        }
    }
}

fn open_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Protocol 0 is NETLINK_ROUTE.
    let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    bind(fd.as_fd(), &SocketAddrNetlink::new(0, libc::RTMGRP_LINK as u32))?;
    Ok(fd)
}
