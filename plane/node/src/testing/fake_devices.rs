//! Device factory without devices: records which ones are open.

mod device;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_frame::MacAddr;
use suimon_ports::{
    DeviceError, DeviceErrorKind, DeviceFactory, DeviceFeatures, DeviceNotice, FileIdentity,
    KernelPathCounters, KernelPathTable, LinkProperties, LinkSpeed, PortDevice, PortDeviceSpec,
    PortObserver, QueueHost, SocketFiles, StaleSocket, SteeringRule, UplinkDriver,
};
use suimon_quantity::PortId;

use self::device::FakeDevice;
use crate::ports::{created_socket, created_tap, exclusive_resource};
use crate::transaction::{ExclusiveResource, NetworkDeviceId};

/// State of the host that survives a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostState {
    /// TAPs, and whether the daemon created each.
    taps: BTreeMap<NetworkDeviceId, bool>,
    sockets: BTreeMap<PathBuf, FileIdentity>,
    files_made: u64,
}

impl HostState {
    fn make_file(&mut self, path: &Path) -> FileIdentity {
        self.files_made += 1;
        let identity = FileIdentity {
            device: 1,
            inode: self.files_made,
            created_unix_ns: Some(self.files_made),
        };
        self.sockets.insert(path.to_owned(), identity);
        identity
    }
}

/// Fake device factory of one daemon process, with the host's state that survives the process.
#[derive(Clone, Default)]
pub(crate) struct FakeDevices {
    inner: Arc<Mutex<Inner>>,
    left: Arc<Mutex<HostState>>,
    bound: BoundSockets,
}

/// Sockets on which the process listens, of NICs and disks.
#[derive(Clone, Default)]
pub(crate) struct BoundSockets(Arc<Mutex<BTreeSet<PathBuf>>>);

impl BoundSockets {
    pub(crate) fn bind(&self, path: &Path) -> Result<(), DeviceError> {
        match self.lock().insert(path.to_owned()) {
            true => Ok(()),
            false => Err(device_error(DeviceErrorKind::Busy)),
        }
    }

    pub(crate) fn release(&self, path: &Path) {
        self.lock().remove(path);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Inner {
    open: BTreeMap<ExclusiveResource, Opened>,
    calls: usize,
    /// Call of `open` or `change` that fails, counted from 0 after arming.
    fail_at: Option<usize>,
    /// If set, each call of `open` waits for a message.
    gate: Option<Arc<Mutex<Receiver<()>>>>,
    /// Devices that cannot be opened.
    missing: BTreeSet<String>,
    /// Interface indices of uplink devices that differ from 1.
    indices: BTreeMap<String, u32>,
    /// Devices that were probed while open.
    probed_open: Vec<ExclusiveResource>,
    /// Kernel paths last set.
    kernel_paths: KernelPathTable,
    /// Addresses that the next call of `set_kernel_path_table` returns as learned.
    refreshed: Vec<(u32, MacAddr)>,
    /// Counters returned for each port.
    kernel_path_counters: KernelPathCounters,
    /// Features returned for each packet-socket uplink.
    features: Result<DeviceFeatures, DeviceError>,
    /// Links of devices that differ from [`LINK`].
    links: BTreeMap<String, LinkProperties>,
    /// MAC addresses that were set, by device.
    macs: BTreeMap<String, MacAddr>,
    /// Steering rules of open AF_XDP uplinks, by device.
    steering: BTreeMap<String, Vec<SteeringRule>>,
    /// Reason with which devices reject steering rules; `None`: they accept them.
    steers_not: Option<String>,
}

/// Default link of a device.
pub(crate) const LINK: LinkProperties = LinkProperties {
    is_up: true,
    speed: LinkSpeed { mbps: Some(10_000), full_duplex: Some(true) },
};

impl Default for Inner {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            calls: 0,
            fail_at: None,
            gate: None,
            missing: BTreeSet::new(),
            indices: BTreeMap::new(),
            probed_open: Vec::new(),
            kernel_paths: KernelPathTable::default(),
            refreshed: Vec::new(),
            kernel_path_counters: KernelPathCounters::default(),
            features: Ok(DeviceFeatures::default()),
            links: BTreeMap::new(),
            macs: BTreeMap::new(),
            steering: BTreeMap::new(),
            steers_not: None,
        }
    }
}

struct Opened {
    port: PortId,
    spec: PortDeviceSpec,
    observer: Arc<dyn PortObserver>,
}

impl FakeDevices {
    pub(crate) fn on_host(state: HostState) -> Self {
        Self { left: Arc::new(Mutex::new(state)), ..Self::default() }
    }

    /// Returns the sockets of its NICs, which disks of the same process can share.
    pub(crate) fn bound(&self) -> BoundSockets {
        self.bound.clone()
    }

    /// Returns the state of the host after a kill of the process now.
    pub(crate) fn host_after_kill(&self) -> HostState {
        self.left().clone()
    }

    pub(crate) fn taps(&self) -> BTreeSet<String> {
        self.left().taps.keys().map(|tap| tap.device.clone()).collect()
    }

    /// Creates a TAP as another program does.
    pub(crate) fn make_tap(&self, device: &str) {
        let tap = NetworkDeviceId { netns: None, device: device.to_owned() };
        self.left().taps.insert(tap, false);
    }

    /// Deletes all TAPs, as a restart of the host does.
    pub(crate) fn reboot(&self) {
        self.left().taps.clear();
    }

    /// Returns the existing socket files.
    pub(crate) fn sockets(&self) -> BTreeSet<PathBuf> {
        self.left().sockets.keys().cloned().collect()
    }

    /// Simulates a socket file of another process.
    pub(crate) fn make_socket(&self, path: &str) {
        self.left().make_file(Path::new(path));
    }

    fn left(&self) -> MutexGuard<'_, HostState> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fail_at(&self, call: Option<usize>) {
        let mut inner = self.lock();
        inner.calls = 0;
        inner.fail_at = call;
    }

    /// Has each call of `open` wait for a message until the sender is dropped.
    pub(crate) fn hold(&self) -> Sender<()> {
        let (sender, receiver) = channel();
        self.lock().gate = Some(Arc::new(Mutex::new(receiver)));
        sender
    }

    pub(crate) fn set_missing(&self, device: &str, is_missing: bool) {
        let mut inner = self.lock();
        if is_missing {
            inner.missing.insert(device.to_owned());
        } else {
            inner.missing.remove(device);
        }
    }

    /// Simulates that another device has taken the name of an uplink's device.
    pub(crate) fn set_index(&self, device: &str, index: u32) {
        self.lock().indices.insert(device.to_owned(), index);
    }

    /// Sets the features returned for each packet-socket uplink.
    pub(crate) fn set_features(&self, features: Result<DeviceFeatures, DeviceError>) {
        self.lock().features = features;
    }

    pub(crate) fn kernel_paths(&self) -> KernelPathTable {
        self.lock().kernel_paths.clone()
    }

    pub(crate) fn learn(&self, group: u32, mac: MacAddr) {
        self.lock().refreshed.push((group, mac));
    }

    pub(crate) fn set_kernel_path_counters(&self, counters: KernelPathCounters) {
        self.lock().kernel_path_counters = counters;
    }

    /// Returns the open devices with their ports.
    pub(crate) fn open_devices(&self) -> Vec<(PortId, PortDeviceSpec)> {
        self.lock().open.values().map(|opened| (opened.port, opened.spec.clone())).collect()
    }

    /// Returns the sockets that were probed while open.
    pub(crate) fn sockets_probed_while_open(&self) -> Vec<PathBuf> {
        let inner = self.lock();
        let sockets = inner.probed_open.iter().filter_map(|claim| match claim {
            ExclusiveResource::Socket(path) => Some(path.clone()),
            ExclusiveResource::Device(_) | ExclusiveResource::File(_) => None,
        });
        sockets.collect()
    }

    /// Passes a notice to the observer of the device of a port.
    pub(crate) fn notify(&self, port: PortId, notice: DeviceNotice) {
        let inner = self.lock();
        let opened = inner.open.values().find(|opened| opened.port == port).unwrap();
        opened.observer.handle_notice(port, notice);
    }

    /// Sets the link of a device and notifies the observer.
    pub(crate) fn set_link(&self, device: &str, link: LinkProperties) {
        let mut inner = self.lock();
        inner.links.insert(device.to_owned(), link);
        let device_entry = inner.open.iter().find(|(claim, _)| is_device(claim, device));
        let Some((port, observer)) =
            device_entry.map(|(_, opened)| (opened.port, opened.observer.clone()))
        else {
            return;
        };
        drop(inner);
        observer.handle_notice(port, DeviceNotice::LinkChanged(link));
    }

    pub(crate) fn set_mac(&self, device: &str, mac: MacAddr) {
        self.lock().macs.insert(device.to_owned(), mac);
    }

    /// Returns the steering rules last set for an AF_XDP uplink since it was opened.
    pub(crate) fn steering(&self, device: &str) -> Option<Vec<SteeringRule>> {
        self.lock().steering.get(device).cloned()
    }

    /// Has all devices reject steering rules, with this reason.
    pub(crate) fn refuse_steering(&self, reason: &str) {
        self.lock().steers_not = Some(reason.to_owned());
    }

    /// Returns the port of an open device.
    pub(crate) fn port_of(&self, device: &str) -> Option<PortId> {
        let inner = self.lock();
        inner.open.iter().find(|(claim, _)| is_device(claim, device)).map(|(_, opened)| opened.port)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn count_call(&mut self) -> Result<(), DeviceError> {
        let call = self.calls;
        self.calls += 1;
        if self.fail_at == Some(call) { Err(device_error(DeviceErrorKind::Host)) } else { Ok(()) }
    }

    fn check(&self, spec: &PortDeviceSpec) -> Result<(), DeviceError> {
        let claim = exclusive_resource(spec);
        let is_missing = match &claim {
            ExclusiveResource::Device(tap) => self.missing.contains(&tap.device),
            ExclusiveResource::Socket(_) | ExclusiveResource::File(_) => false,
        };
        if is_missing {
            return Err(device_error(DeviceErrorKind::Missing));
        }
        if self.open.contains_key(&claim) {
            return Err(device_error(DeviceErrorKind::Busy));
        }
        Ok(())
    }
}

fn is_device(claim: &ExclusiveResource, device: &str) -> bool {
    matches!(claim, ExclusiveResource::Device(tap) if tap.device == device)
}

/// Returns the default MAC address of an uplink's device.
pub(crate) fn mac_of(device: &str) -> MacAddr {
    let hash = device
        .bytes()
        .fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let [_, a, b, c] = hash.to_be_bytes();
    MacAddr::new([0x00, 0x1b, 0x21, a, b, c])
}

pub(crate) fn device_error(kind: DeviceErrorKind) -> DeviceError {
    DeviceError { kind, field: "device", detail: format!("refused: {kind:?}") }
}

impl DeviceFactory for FakeDevices {
    fn probe(&self, spec: &PortDeviceSpec) -> Result<(), DeviceError> {
        let mut inner = self.lock();
        if inner.open.contains_key(&exclusive_resource(spec)) {
            inner.probed_open.push(exclusive_resource(spec));
        }
        inner.check(spec)
    }

    fn open(
        &self,
        port: PortId,
        spec: &PortDeviceSpec,
        _queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError> {
        let gate = self.lock().gate.clone();
        if let Some(gate) = gate {
            let _ = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
        }
        let mut inner = self.lock();
        inner.count_call()?;
        inner.check(spec)?;
        created_socket(spec).map_or(Ok(()), |path| self.bound.bind(&path))?;
        if let Some(tap) = created_tap(spec) {
            self.left().taps.entry(tap).or_insert(true);
        }
        let socket = created_socket(spec).map(|path| (self.left().make_file(&path), path));
        inner.open.insert(exclusive_resource(spec), Opened { port, spec: spec.clone(), observer });
        Ok(Box::new(FakeDevice { host: self.clone(), claim: exclusive_resource(spec), socket }))
    }

    fn set_kernel_path_table(
        &self,
        table: &KernelPathTable,
    ) -> Result<Vec<(u32, MacAddr)>, DeviceError> {
        let mut inner = self.lock();
        inner.kernel_paths = table.clone();
        Ok(std::mem::take(&mut inner.refreshed))
    }

    fn kernel_path_counters(&self, _port: PortId) -> KernelPathCounters {
        self.lock().kernel_path_counters
    }

    fn device_index(&self, spec: &PortDeviceSpec) -> Option<u32> {
        let PortDeviceSpec::Uplink(uplink) = spec else { return None };
        let inner = self.lock();
        let exists = !inner.missing.contains(&uplink.device);
        exists.then(|| inner.indices.get(&uplink.device).copied().unwrap_or(1))
    }

    fn hardware_features(
        &self,
        spec: &PortDeviceSpec,
    ) -> Result<Option<DeviceFeatures>, DeviceError> {
        match spec {
            PortDeviceSpec::Uplink(spec) if spec.driver != UplinkDriver::Tap => {
                self.lock().features.clone().map(Some)
            }
            _ => Ok(None),
        }
    }

    fn remove_tap(&self, device: &str, netns: Option<&str>) -> Result<bool, DeviceError> {
        let tap = NetworkDeviceId { netns: netns.map(str::to_owned), device: device.to_owned() };
        assert!(
            !self.lock().open.contains_key(&ExclusiveResource::Device(tap.clone())),
            "{tap:?} is open"
        );
        let mut host_state = self.left();
        if host_state.taps.get(&tap) == Some(&false) {
            return Ok(false);
        }
        host_state.taps.remove(&tap);
        Ok(true)
    }
}

impl SocketFiles for FakeDevices {
    fn identity(&self, path: &Path) -> Option<FileIdentity> {
        self.left().sockets.get(path).copied()
    }

    fn remove_stale(&self, socket: &StaleSocket) -> io::Result<bool> {
        let is_open =
            self.lock().open.contains_key(&ExclusiveResource::Socket(socket.path.clone()));
        assert!(!is_open, "{socket:?} is open");
        let mut host = self.left();
        let identity = host.sockets.get(&socket.path).copied();
        let is_same =
            identity.is_some() && (socket.identity.is_none() || socket.identity == identity);
        if is_same {
            host.sockets.remove(&socket.path);
        }
        Ok(is_same)
    }
}
