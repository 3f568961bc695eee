//! The node: public interface of the control plane towards the daemon.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use suimon_contract::{
    ApiError, ErrorCode, HostSection, ImageChanges, ImageCheck, ImageInfo, ImageRequest,
    MeasureStoreRequest, Name, Operation, Plan, VmGuest, parse_toml,
};
use suimon_ports::{
    CpuTopology, DeviceFactory, MemberDevices, PowerHost, SocketFiles, SriovHost, StateStore,
    StateStoreError,
};
use suimon_quantity::{QueueId, WorkerId};
use suimon_recording::RecordSink;
use suimon_switch::CaptureBufferLimits;

use crate::captures::Capture;
use crate::cluster::ChangeGuard;
use crate::command::Command;
use crate::control::Controller;
use crate::disks::{DiskMirror, ServedDisk};
use crate::events::EventLog;
use crate::host::{ConfinementReader, DeniedCall, RefusedAccess, confinement, refused_access};
use crate::power::PowerTable;
use crate::shared::{Shared, SharedDependencies};
use crate::start_up::{NodeError, start_up};
use crate::state::{DeferringStore, load_state};
use crate::teams::Teams;
use crate::{
    ChangeOptions, ClusterStoreConnector, DiskDependencies, DiskFileJob, Edit, NodeListener,
    PeerNodes, PortKey, QueueSide, SwitchPlane, UnixClock, VmAction, VmDependencies,
};

mod reading;

/// Capacity of the control thread's command queue. Senders block, or defer device notices, while
/// the queue is full.
const COMMANDS_MAX: usize = 4096;

/// Dependencies and parameters of a [`Node`].
pub struct NodeDependencies {
    /// State store: desired state, events, and records of the objects that the daemon created.
    pub store: Arc<dyn StateStore>,
    /// Factory of the devices under ports.
    pub devices: Arc<dyn DeviceFactory>,
    /// Access to LACPDUs and announcements on the devices of team members.
    pub team_member_devices: Arc<dyn MemberDevices>,
    /// Dependencies of the disk subsystem.
    pub disks: DiskDependencies,
    /// Dependencies of the VM subsystem.
    pub vms: VmDependencies,
    /// Power settings of the host's CPUs.
    pub power: Arc<dyn PowerHost>,
    /// Access to network adapters with SR-IOV.
    pub sriov: Arc<dyn SriovHost>,
    /// Connector to the API of other nodes.
    pub peer_nodes: Arc<dyn PeerNodes>,
    /// Connector to the stores (etcd) of clusters.
    pub cluster_connector: Arc<dyn ClusterStoreConnector>,
    /// Identification and removal of stale socket files.
    pub socket_files: Arc<dyn SocketFiles>,
    /// Switching plane, which forwards frames.
    pub plane: Arc<dyn SwitchPlane>,
    /// Wall clock for time stamps, in milliseconds since 1970-01-01 UTC.
    pub clock: UnixClock,
    /// Receiver of notifications about new events and operation changes.
    pub listener: Arc<dyn NodeListener>,
    /// Sink for recordings of policy inputs and decisions; `None` if recording is off.
    pub recording: Option<Arc<dyn RecordSink>>,
    /// Logical CPUs permitted for workers, ascending, not empty.
    pub cpus: Vec<u16>,
    /// Topology (core, NUMA node) of the CPUs in `cpus`, for VMQ.
    pub cpu_topology: Vec<CpuTopology>,
    /// Host name used if the configuration names none.
    pub host_name: String,
    /// Reader of the confinement (seccomp, Landlock, capabilities) of the daemon's threads.
    pub confinement: ConfinementReader,
    /// Called after each attempt to open a NIC, uplink or disk, and to prepare the folder of a VM,
    /// at the start and later. It must not block.
    pub progress: Arc<dyn Fn() + Send + Sync>,
    /// Version of the daemon, for status and events.
    pub version: String,
    /// Delay before the first retry of a failed device. The delay doubles with each failure, up to
    /// 30 times this value.
    pub retry_first: Duration,
    /// Time after the start in which guests of the previous daemon process reconnect. Addresses
    /// remain bound to NICs without a connected guest during this time.
    pub guest_reconnect_window: Duration,
}

/// Maximum time for which a change on a cluster node waits for earlier changes.
const CHANGES_TIMEOUT: Duration = Duration::from_secs(10);

/// Control plane of one host: desired and observed state, events and operations.
///
/// All methods may be called from any thread. Methods that access the host, a guest or another node
/// block for the duration of that access.
pub struct Node {
    shared: Arc<Shared>,
    commands: SyncSender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Node {
    /// Brings the host to the stored desired state and starts the control thread.
    ///
    /// # Errors
    /// The state store is damaged, the plane rejects the stored configuration, or a thread cannot
    /// be created.
    pub fn open(parts: NodeDependencies) -> Result<Self, NodeError> {
        let store = Arc::new(DeferringStore::new(parts.store));
        store.begin_start_up();
        let stored = load_state(store.as_ref())?;
        let is_new = stored.is_none();
        let events = EventLog::open(store.clone(), parts.clock.clone(), parts.listener.clone())?;
        let shared = Arc::new(Shared::new(SharedDependencies {
            guest_reconnect_window: parts.guest_reconnect_window,
            plane: parts.plane,
            devices: parts.devices,
            team_member_devices: parts.team_member_devices,
            teams: Arc::new(Teams::new().map_err(NodeError::Thread)?),
            disks: parts.disks,
            vms: parts.vms,
            power: PowerTable::load(parts.power, store.clone(), parts.retry_first)?,
            sriov: parts.sriov,
            peer_nodes: parts.peer_nodes,
            cluster_connector: parts.cluster_connector,
            socket_files: parts.socket_files,
            events,
            store: store.clone(),
            listener: parts.listener,
            recording: parts.recording,
            clock: parts.clock,
            cpus: parts.cpus,
            cpu_topology: parts.cpu_topology,
            host_name: parts.host_name,
            confinement: parts.confinement,
            progress: parts.progress,
            version: parts.version,
            desired: stored.unwrap_or_default(),
        }));
        let (commands, receiver) = sync_channel(COMMANDS_MAX);
        let controller =
            start_up(&shared, store.clone(), commands.clone(), parts.retry_first, is_new)?;
        let thread = run_controller(controller, receiver).map_err(NodeError::Thread)?;
        // Dropped, and thereby stopped, if a later part cannot be started.
        let node = Self { shared, commands, thread: Mutex::new(Some(thread)) };
        node.shared.start_cluster(node.commands.clone()).map_err(NodeError::Thread)?;
        node.shared.resume_drain()?;
        store.end_start_up();
        Ok(node)
    }

    /// Validates a change and returns its plan. Changes nothing.
    ///
    /// # Errors
    /// Validation errors of the change (those of the first check that fails); never empty.
    pub fn preview(&self, edit: &Edit, options: ChangeOptions) -> Result<Plan, Vec<ApiError>> {
        let change = self.shared.check(edit, options)?;
        let missing = self.shared.missing_images(&change);
        if missing.is_empty() { Ok(change.plan) } else { Err(missing) }
    }

    /// Queues a change. Validation errors are returned at once, unless an earlier change is in
    /// progress: the operation reports them in that case.
    ///
    /// # Errors
    /// Validation errors of the change (those of the first check that fails); never empty. Nothing
    /// was changed.
    pub fn submit(&self, edit: Edit) -> Result<Operation, Vec<ApiError>> {
        self.submit_with(edit, ChangeOptions::default())
    }

    /// Queues a change with options; otherwise like [`Node::submit`].
    ///
    /// On a node of a cluster, the call blocks up to 10 s until earlier changes have ended. It then
    /// waits up to 5 s per shared store for the leader's reservation of raised minimums, and writes
    /// changed policies to the cluster's store.
    ///
    /// # Errors
    /// As [`Node::submit`]; on a cluster node also a conflict if an earlier change is still in
    /// progress, and errors of the cluster's store.
    pub fn submit_with(
        &self,
        edit: Edit,
        options: ChangeOptions,
    ) -> Result<Operation, Vec<ApiError>> {
        // The cluster is consulted before the change, based on the desired state. Earlier changes
        // must have ended, otherwise this state would be outdated.
        let is_node = self.shared.desired().config.cluster.is_some();
        let changing = is_node.then(|| self.begin_change_of_node()).transpose();
        let _changing = changing.map_err(|error| vec![error])?;
        let is_busy = !is_node && self.shared.operations.is_busy();
        let candidate = match is_busy {
            true => None,
            false => Some(self.shared.check(&edit, options)?),
        };
        // Before the cluster is changed, because too many operations may be in progress.
        let operation = self.shared.operations.add(&edit.kind(), &edit.subject(), true);
        let operation = operation.map_err(|error| vec![error])?;
        if let Some(candidate) = candidate {
            operation.set_plan(&candidate.plan, candidate.plan.steps.len());
            let (from, to) = (self.shared.desired(), &candidate.state.config);
            let configs = (&from.config, to);
            match self.shared.prepare_cluster_change(
                &edit,
                configs,
                options.forces_minimums,
                &operation,
            ) {
                Ok(pending) if pending.is_empty() => {}
                Ok(pending) => operation.set_report(pending),
                Err(error) => {
                    operation.withdraw();
                    return Err(vec![error]);
                }
            }
        }
        let id = operation.id();
        self.send(Command::Change { operation, edit: Box::new(edit), options })?;
        self.operation(id).ok_or_else(|| vec![expired_operation()])
    }

    /// Blocks until no other change of this node is in progress, at most [`CHANGES_TIMEOUT`]. The
    /// returned guard delays further changes.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] if another change is still in progress.
    fn begin_change_of_node(&self) -> Result<ChangeGuard<'_>, ApiError> {
        let until = Instant::now() + CHANGES_TIMEOUT;
        let changing = self.shared.cluster.begin_change(CHANGES_TIMEOUT);
        let remaining = until.saturating_duration_since(Instant::now());
        let is_idle = |_: &ChangeGuard<'_>| self.shared.operations.wait_idle(remaining);
        changing.filter(is_idle).ok_or_else(|| {
            let text = "another change is in progress; wait until it has ended";
            ApiError::new(ErrorCode::Conflict, text)
        })
    }

    /// Applies the daemon's host file if its text differs from the text applied last. Returns
    /// `None` otherwise: the stored state, with later changes, remains in effect.
    ///
    /// # Errors
    /// All errors of the file with their lines; never empty.
    pub fn submit_file(
        &self,
        text: &str,
        name: &str,
        options: ChangeOptions,
    ) -> Result<Option<Operation>, Vec<ApiError>> {
        if self.shared.desired().file_text.as_deref() == Some(text) {
            return Ok(None);
        }
        let config = Box::new(parse_toml(text, Some(name))?);
        self.submit_with(Edit::ApplyFile { config, text: text.to_owned() }, options).map(Some)
    }

    /// Moves a queue to `worker`. With dynamic VMQ, later decisions start from the new placement
    /// and may move the queue again. With static VMQ, the queue stays until the configuration
    /// changes.
    ///
    /// # Errors
    /// The queue or the worker does not exist.
    pub fn move_queue(
        &self,
        port: &str,
        side: QueueSide,
        index: u16,
        worker: u16,
    ) -> Result<Operation, ApiError> {
        let queue = self.find_queue(port, side, index)?;
        if !self.shared.plane.workers().iter().any(|view| view.id.0 == worker) {
            let text =
                format!("there is no worker {worker}; `suimon worker list` lists the workers");
            return Err(ApiError::new(ErrorCode::NotFound, text).with_field("worker"));
        }
        let operation = self.shared.operations.add("queue move", &format!("queue/{port}"), true)?;
        let id = operation.id();
        let command = Command::MoveQueue { operation, queue, to: WorkerId(worker) };
        self.send(command).map_err(crate::errors::summarize)?;
        self.operation(id).ok_or_else(expired_operation)
    }

    /// Resumes disk jobs that earlier daemon processes left unfinished. Starts VMs with `autostart`
    /// if the host has booted since the last daemon, and those whose autostart an earlier process
    /// has not ended. The daemon calls it after it has applied the host file. Until then the disks
    /// of these jobs stay closed.
    pub fn finish_start(&self) {
        // A send error means that the control thread has ended.
        let _ = self.send(Command::FinishStart);
    }

    /// Starts a job on a disk's image file. Conflicts are reported at once.
    ///
    /// # Errors
    /// The disk does not exist, another job on it is in progress, or a client uses it.
    pub fn start_disk_job(&self, disk: &Name, work: DiskFileJob) -> Result<Operation, ApiError> {
        self.shared.check_disk_job(disk, &work)?;
        let kind = format!("disk {}", work.verb());
        let operation = self.shared.operations.add(&kind, &format!("disk/{disk}"), true)?;
        let id = operation.id();
        let command = Command::RunDiskFileJob { operation, disk: disk.clone(), job: work };
        self.send(command).map_err(crate::errors::summarize)?;
        self.operation(id).ok_or_else(expired_operation)
    }

    /// Starts to copy a disk, including concurrent writes, to the NBD export of the same name at
    /// the other end of `stream`. The export must have the same size and read as zeros. Blocks for
    /// some seconds until the server has answered.
    ///
    /// # Errors
    /// The disk does not exist, is not in service or has another job in progress, or the server has
    /// no matching export.
    pub fn mirror_disk(&self, disk: &Name, stream: OwnedFd) -> Result<DiskMirror, ApiError> {
        DiskMirror::start(&self.shared, disk, stream)
    }

    /// Serves a disk over NBD on `stream`, as the destination of a copy. Returns at once.
    ///
    /// # Errors
    /// The disk does not exist, is not in service or has another job in progress, or the process
    /// has no free file descriptors.
    pub fn serve_disk(&self, disk: &Name, stream: OwnedFd) -> Result<ServedDisk, ApiError> {
        ServedDisk::start(&self.shared, disk, stream)
    }

    /// Starts to measure the capacity of a store. Conflicts are reported at once.
    ///
    /// # Errors
    /// The store does not exist, a measurement of it is in progress, or its disks are in use.
    pub fn measure_store(
        &self,
        store: &Name,
        request: MeasureStoreRequest,
    ) -> Result<Operation, ApiError> {
        self.shared.check_measurement(store, request)?;
        let subject = format!("store/{store}");
        let operation = self.shared.operations.add("store measure", &subject, true)?;
        let id = operation.id();
        let command = Command::MeasureStore { operation, store: store.clone(), request };
        self.send(command).map_err(crate::errors::summarize)?;
        self.operation(id).ok_or_else(expired_operation)
    }

    /// Returns the properties of an image file in a store.
    ///
    /// # Errors
    /// The store or the file does not exist, or the file is in use or cannot be opened.
    pub fn image_info(&self, store: &Name, request: &ImageRequest) -> Result<ImageInfo, ApiError> {
        self.shared.image_info(store, request)
    }

    /// Checks the metadata of an image file in a store.
    ///
    /// # Errors
    /// The store or the file does not exist, or the file is in use.
    pub fn check_image(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageCheck, ApiError> {
        self.shared.check_image(store, request)
    }

    /// Repairs the metadata of an image file in a store, or reverts a repair.
    ///
    /// # Errors
    /// The store or the file does not exist, or the file is in use, cannot be repaired or cannot be
    /// written.
    pub fn repair_image(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageChanges, ApiError> {
        self.shared.repair_image(store, request)
    }

    /// Writes a new location of the parent into an image file in a store.
    ///
    /// # Errors
    /// The store or the file does not exist, the file is in use, or the given parent is not its
    /// parent.
    pub fn set_image_parent(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageChanges, ApiError> {
        self.shared.set_image_parent(store, request)
    }

    fn find_queue(&self, port: &str, side: QueueSide, index: u16) -> Result<QueueId, ApiError> {
        let missing = || {
            let text = "there is no such queue; `suimon queue list` lists the queues (if ports \
                        share a name, write it like `nic:web/rx/0`)";
            ApiError::new(ErrorCode::NotFound, text).with_resource(format!("queue/{port}"))
        };
        let port = self.shared.port_by_label(port).ok_or_else(missing)?;
        let id = QueueId { port: port.id, direction: side.direction(&port.key), index };
        let exists = self.shared.plane.queues().iter().any(|view| view.id == id);
        exists.then_some(id).ok_or_else(missing)
    }

    /// Starts a capture of the frames that pass a port.
    ///
    /// # Errors
    /// The port does not exist, a capture of it is in progress, or
    /// [`CAPTURES_MAX`](crate::CAPTURES_MAX) captures are in progress.
    pub fn capture(
        &self,
        key: &PortKey,
        options: CaptureBufferLimits,
    ) -> Result<Capture, ApiError> {
        Capture::begin(&self.shared, key, options)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns an operation that the caller has just added.
    pub(crate) fn known_operation(&self, id: u64) -> Result<Operation, ApiError> {
        self.operation(id).ok_or_else(expired_operation)
    }

    pub(crate) fn send(&self, command: Command) -> Result<(), Vec<ApiError>> {
        self.commands.send(command).map_err(|_| {
            let text = "the daemon is stopping, or its control thread panicked; see its log";
            vec![ApiError::new(ErrorCode::Internal, text)]
        })
    }

    /// Fills the queue of the control thread with commands, for tests.
    #[cfg(test)]
    pub(crate) fn fill_commands(&self) {
        while self.commands.try_send(Command::Wake).is_ok() {}
    }

    /// Removes a node that has failed permanently from the cluster.
    ///
    /// # Errors
    /// The cluster has no such node, the node is alive, or the cluster's store does not answer.
    pub fn remove_cluster_node(&self, node: &str) -> Result<(), ApiError> {
        self.shared.remove_cluster_node(node)
    }

    /// Starts an action on a VM. Conflicts are reported at once.
    ///
    /// # Errors
    /// The VM does not exist, or its state does not permit the action.
    pub fn start_vm_action(&self, vm: &Name, work: VmAction) -> Result<Operation, ApiError> {
        self.shared.check_vm_action(vm, work)?;
        let kind = format!("vm {}", work.verb());
        let operation = self.shared.operations.add(&kind, &format!("vm/{vm}"), false)?;
        let id = operation.id();
        self.shared.submit_vm_action(vm, work, operation);
        self.operation(id).ok_or_else(expired_operation)
    }

    /// Opens a connection to a VM's serial console. A console has one client at a time.
    ///
    /// # Errors
    /// The VM does not exist or does not run, or another client is connected to its console.
    pub fn vm_console(&self, vm: &Name) -> Result<OwnedFd, ApiError> {
        self.shared.vm_console(vm)
    }

    /// Queries the guest agent of a VM. Blocks for up to some seconds.
    ///
    /// # Errors
    /// The VM does not exist or does not run, or no guest agent answers.
    pub fn vm_guest(&self, vm: &Name) -> Result<VmGuest, ApiError> {
        self.shared.vm_guest(vm)
    }

    /// Reports that the host file `file` was not applied at the start, for these reasons.
    pub fn report_host_file_not_applied(&self, file: &str, errors: &[ApiError]) {
        self.shared.report_host_file_not_applied(file, errors);
    }

    /// Reports that a TCP listener of `[api]` or `[console]` cannot be used.
    pub fn report_listener_failed(&self, error: &ApiError) {
        self.shared.report_listener_failed(error);
    }

    /// Appends an event about a system call that seccomp denied to a thread of the daemon.
    pub fn report_denied_call(&self, denied: &DeniedCall) {
        self.shared.events.append(vec![confinement::denied_event(denied)]);
    }

    /// Appends an event about requests that were refused because of wrong credentials.
    pub fn report_refused_access(&self, refused: &RefusedAccess) {
        self.shared.events.append(vec![refused_access::refused_access_event(refused)]);
    }

    /// Requests cancellation of an operation and returns its current state; `None` if the operation
    /// is unknown.
    pub fn cancel_operation(&self, id: u64) -> Option<Operation> {
        self.shared.operations.cancel(id)
    }

    /// Completes the change in progress, closes all devices and joins the threads. TAPs remain.
    /// Status can still be read afterwards; changes are rejected.
    pub fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        self.shared.stop_draining();
        // A send error means that the control thread has ended.
        let _ = self.commands.send(Command::Stop);
        let result = thread.join();
        self.shared.stop_cluster();
        match result {
            // Again, if the threads of the cluster have emitted events meanwhile.
            Ok(()) => self.shared.events.release_unused_sequences(),
            Err(_) => tracing::error!("the control thread panicked"),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the `[host]` section of the stored desired state, so that the plane can be started with
/// its workers; `None` if the store is new.
///
/// # Errors
/// The state store is damaged.
pub fn stored_host(store: &dyn StateStore) -> Result<Option<HostSection>, StateStoreError> {
    Ok(load_state(store)?.map(|state| state.config.host))
}

/// Starts the control thread.
///
/// # Errors
/// The thread cannot be created; everything that the controller has started was stopped.
fn run_controller(
    controller: Controller,
    commands: Receiver<Command>,
) -> std::io::Result<JoinHandle<()>> {
    let ends = EndNotifier(controller.shared.clone());
    let waiting = Arc::new(Mutex::new(Some(controller)));
    let take_controller = |slot: &Mutex<Option<Controller>>| {
        slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    };
    let controller_slot = waiting.clone();
    let thread = std::thread::Builder::new().name("suimon-node".to_owned()).spawn(move || {
        let ends = ends;
        if let Some(controller) = take_controller(&controller_slot) {
            controller.run(&commands);
            ends.0.events.release_unused_sequences();
        }
    });
    if thread.is_err() {
        take_controller(&waiting).into_iter().for_each(Controller::shut_down);
    }
    thread
}

struct EndNotifier(Arc<Shared>);

impl Drop for EndNotifier {
    fn drop(&mut self) {
        self.0.listener.handle_end();
    }
}

fn expired_operation() -> ApiError {
    let text = "the operation has ended, and its result was removed from the list of operations \
                before it could be returned; check the state of the object";
    ApiError::new(ErrorCode::Internal, text)
}
