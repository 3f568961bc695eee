//! One thread that hears of every link's changes, in all namespaces in use.

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
use suimon_ports::{DeviceError, LinkSpeed, PortObserver};
use suimon_quantity::PortId;

use crate::device_query::DeviceQuery;
use crate::explain::host;
use crate::namespace::{Namespace, NamespaceId};
use crate::namespace_names::{DEAF, NamespaceNames};
use crate::netlink::{LinkState, link_messages, state_request};
use crate::speed_notices::{Changed, SpeedNotices};
use crate::watched_link::{WatchSubject, WatchedLink, lock};

/// The kernel makes datagrams of at most 32 KB in a dump and less otherwise.
const DATAGRAM_BYTES: usize = 32 << 10;
/// Sockets looked at per turn, and datagrams read from each.
const EVENTS_MAX: usize = 8;
const DATAGRAMS_PER_TURN: usize = 64;
const TOKEN_STOP: u64 = u64::MAX;
const TOKEN_NAMES: u64 = u64::MAX - 1;
const TOKEN_SPEEDS: u64 = u64::MAX - 2;

/// Starts with the first [`LinkWatcher::new`], ends when it is dropped.
pub(crate) struct LinkWatcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A link being watched, until this is dropped.
pub(crate) struct LinkWatch {
    shared: Arc<Shared>,
    link: Arc<WatchedLink>,
}

struct Shared {
    epoll: OwnedFd,
    stop: OwnedFd,
    /// `None` if this user has no more of such watches: all else goes on.
    names: Option<NamespaceNames>,
    /// Asked in the namespace of this process, and told of there.
    query: Arc<DeviceQuery>,
    /// `None` if the kernel tells nobody: speeds are asked for when a link changes.
    speeds: Option<SpeedNotices>,
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
    /// # Errors
    /// Out of descriptors or threads.
    pub(crate) fn new(query: Arc<DeviceQuery>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &stop, EventData::new_u64(TOKEN_STOP), EventFlags::IN)?;
        let names = NamespaceNames::new();
        match &names {
            Ok(names) => {
                epoll::add(&epoll, names, EventData::new_u64(TOKEN_NAMES), EventFlags::IN)?;
            }
            Err(errno) => tracing::warn!(%errno, "{DEAF}"),
        }
        let names = names.ok();
        let speeds = SpeedNotices::new(&query);
        match &speeds {
            Ok(speeds) => {
                let token = EventData::new_u64(TOKEN_SPEEDS);
                epoll::add(&epoll, speeds, token, EventFlags::IN)?;
            }
            Err(error) => tracing::info!(%error, "speeds that are set are not heard of"),
        }
        let (speeds, registry) = (speeds.ok(), Mutex::default());
        let shared = Arc::new(Shared { epoll, stop, names, query, speeds, registry });
        let for_thread = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("link-watch".to_owned()).spawn(move || for_thread.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Watches a device of `namespace`. The observer hears its state soon, and then
    /// each change.
    ///
    /// # Errors
    /// No socket could be opened there.
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
            socket.ask(Some(index));
        }
        drop(registry);
        if namespace.name().is_some() {
            self.shared.names.iter().for_each(NamespaceNames::watch);
            // The name may have gone before anybody heard of it.
            link.check_name();
        }
        Ok(LinkWatch { shared: Arc::clone(&self.shared), link })
    }
}

impl Drop for LinkWatcher {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // An observer may drop the last owner on the watching thread itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl LinkWatch {
    /// The last state heard.
    pub(crate) fn state(&self) -> LinkState {
        self.link.state()
    }

    /// The speed told last.
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
            // Closing it takes it out of the epoll set.
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
        let known = registry.sockets.iter().find(|(_, socket)| socket.namespace == namespace.id());
        if let Some((token, _)) = known {
            return Ok(*token);
        }
        let fail = |errno: Errno| host("netns", "listening to link changes", &errno.into());
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
                    tracing::error!(%errno, "link changes are no longer heard of");
                    return;
                }
            }
            for event in &events {
                let token = event.data.u64();
                if token == TOKEN_STOP {
                    return;
                }
                if token == TOKEN_NAMES {
                    self.names.iter().for_each(NamespaceNames::clear);
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
        for _ in 0..DATAGRAMS_PER_TURN {
            match recv(&socket.fd, &mut *datagram, RecvFlags::DONTWAIT) {
                Ok((len, _)) => self.tell(token, datagram.get(..len).unwrap_or_default()),
                // Messages were lost: ask for everything again.
                Err(Errno::NOBUFS) => socket.ask(None),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn read_speeds(&self, datagram: &mut [u8]) {
        let Some(speeds) = &self.speeds else { return };
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some(changed) = speeds.read(datagram) else { return };
            let concerns = |link: &&Arc<WatchedLink>| match &changed {
                Changed::These(indices) => indices.contains(&link.index),
                Changed::Any => true,
            };
            let links: Vec<_> = self.registry().links.iter().filter(concerns).cloned().collect();
            for link in links {
                link.tell_facts(&self.query);
            }
        }
    }

    fn tell(&self, token: u64, datagram: &[u8]) {
        for message in link_messages(datagram) {
            let links: Vec<_> = {
                let registry = self.registry();
                let concerned = registry.links.iter();
                concerned
                    .filter(|link| link.token == token && link.index == message.index)
                    .cloned()
                    .collect()
            };
            // The lock is free here: an observer may open or drop a device.
            for link in links {
                link.handle(&message.event);
                link.tell_facts(&self.query);
            }
        }
    }
}

impl NetlinkSocket {
    /// The answer arrives like any other message.
    fn ask(&self, index: Option<u32>) {
        // It fails only if the kernel is out of memory or a dump is under way,
        // which brings the answer too.
        if let Err(errno) = send(&self.fd, &state_request(index), SendFlags::DONTWAIT) {
            tracing::warn!(%errno, "asking for the state of links");
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
