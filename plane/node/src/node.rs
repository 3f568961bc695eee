//! The node as the daemon uses it: how it begins and ends, and what is done with it.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use suimon_contract::{
    ApiError, ErrorCode, HostSection, ImageChanges, ImageCheck, ImageInfo, ImageRequest,
    MeasureStoreRequest, Name, Operation, Plan, VmGuest, parse_toml,
};
use suimon_ports::{
    CpuPlace, DeviceFactory, MemberDevices, PowerHost, SocketFiles, SriovHost, StateStore,
    StoreError,
};
use suimon_quantity::{ProcessorId, QueueId};
use suimon_recording::Sink;
use suimon_switch::CaptureOptions;

use crate::capture::Capture;
use crate::cluster::Changing;
use crate::confinement::{self, ConfinementReader, RefusedCall};
use crate::control::Command;
use crate::disks::{DiskMirror, ServedDisk};
use crate::events::EventLog;
use crate::power::PowerTable;
use crate::records::load_state;
use crate::shared::{Shared, SharedParts, UnixClock};
use crate::start_up::{NodeError, start_up};
use crate::teams::Teams;
use crate::{
    ChangeOptions, ClusterStores, DiskParts, DiskWork, Edit, FarNodes, PortKey, QueueSide,
    SwitchPlane, VmParts, VmWork,
};

mod reading;

/// Notices and changes that wait for the control thread.
const COMMANDS_WAITING: usize = 4096;

/// Hears of what is new, to wake those who wait for it. Called from several
/// threads; must not block and must not call the node.
pub trait NodeListener: Send + Sync {
    /// The event log has grown up to this sequence.
    fn handle_events(&self, sequence: u64);
    /// An operation has changed.
    fn handle_operation(&self, id: u64);
    /// The control thread has ended, on request or because of a defect, or one that
    /// drives teams has because of a defect. Nothing can be changed any more.
    fn handle_end(&self);
}

/// Nobody listens.
pub struct NoListener;

impl NodeListener for NoListener {
    fn handle_events(&self, _sequence: u64) {}
    fn handle_operation(&self, _id: u64) {}
    fn handle_end(&self) {}
}

/// What a node is made of.
pub struct NodeParts {
    /// Where desired state, events and the record of what we made are kept.
    pub store: Arc<dyn StateStore>,
    /// Opens devices.
    pub devices: Arc<dyn DeviceFactory>,
    /// What a team needs of its members' devices.
    pub members: Arc<dyn MemberDevices>,
    /// What disks need.
    pub disks: DiskParts,
    /// What VMs need.
    pub vms: VmParts,
    /// The host's power settings.
    pub power: Arc<dyn PowerHost>,
    /// Adapters with SR-IOV.
    pub sriov: Arc<dyn SriovHost>,
    /// Knows how to reach other nodes.
    pub far_nodes: Arc<dyn FarNodes>,
    /// Knows how to reach clusters' stores.
    pub clusters: Arc<dyn ClusterStores>,
    /// Removes what sockets a killed process left behind.
    pub socket_files: Arc<dyn SocketFiles>,
    /// Switches frames.
    pub plane: Arc<dyn SwitchPlane>,
    /// Tells the time for people: milliseconds since 1970-01-01 UTC.
    pub clock: UnixClock,
    /// Hears of what is new.
    pub listener: Arc<dyn NodeListener>,
    /// Where what policies are told and decide is recorded, if it is.
    pub recording: Option<Arc<dyn Sink>>,
    /// Logical CPUs that processors may run on, ascending, at least one.
    pub cpus: Vec<u16>,
    /// Where these are in the machine, for VMQ.
    pub cpu_places: Vec<CpuPlace>,
    /// Name of the host unless configured.
    pub host_name: String,
    /// Tells what the daemon's threads have given up.
    pub confinement: ConfinementReader,
    /// Version of the daemon.
    pub version: String,
    /// The pause before a failed device is tried again for the first time; later
    /// pauses are up to 30 times as long.
    pub retry_first: Duration,
    /// Time after the start in which guests of the former daemon reconnect. Addresses stay bound to
    /// their NICs that long although they are not connected.
    pub reconnect_max: Duration,
}

/// How long a change of a node of a cluster waits for those before it.
const CHANGES_END: Duration = Duration::from_secs(10);

/// One host: its desired state, what was made of it, its events and operations.
///
/// All methods may be called from any thread; those that ask the host block for
/// as long as it takes.
pub struct Node {
    shared: Arc<Shared>,
    commands: SyncSender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Node {
    /// Makes the host as it was desired last, and takes changes from then on.
    ///
    /// # Errors
    /// The store is damaged, or no thread could be made.
    pub fn open(parts: NodeParts) -> Result<Self, NodeError> {
        let stored = load_state(parts.store.as_ref())?;
        let is_new = stored.is_none();
        let events =
            EventLog::open(parts.store.clone(), parts.clock.clone(), parts.listener.clone())?;
        let shared = Arc::new(Shared::new(SharedParts {
            reconnect_max: parts.reconnect_max,
            plane: parts.plane,
            devices: parts.devices,
            members: parts.members,
            teams: Arc::new(Teams::new().map_err(NodeError::Thread)?),
            disks: parts.disks,
            vms: parts.vms,
            power: PowerTable::load(parts.power, parts.store.clone(), parts.retry_first)?,
            sriov: parts.sriov,
            far_nodes: parts.far_nodes,
            clusters: parts.clusters,
            socket_files: parts.socket_files,
            events,
            store: parts.store.clone(),
            listener: parts.listener,
            recording: parts.recording,
            clock: parts.clock,
            cpus: parts.cpus,
            cpu_places: parts.cpu_places,
            host_name: parts.host_name,
            confinement: parts.confinement,
            version: parts.version,
            desired: stored.unwrap_or_default(),
        }));
        let (commands, receiver) = sync_channel(COMMANDS_WAITING);
        let controller =
            start_up(&shared, parts.store, commands.clone(), parts.retry_first, is_new)?;
        shared.start_cluster(commands.clone()).map_err(NodeError::Thread)?;
        let ends = EndTeller(shared.clone());
        let thread = std::thread::Builder::new()
            .name("suimon-node".to_owned())
            .spawn(move || {
                let _ends = ends;
                controller.run(&receiver);
            })
            .map_err(NodeError::Thread)?;
        shared.go_on_draining()?;
        Ok(Self { shared, commands, thread: Mutex::new(Some(thread)) })
    }

    /// What a change would do.
    ///
    /// # Errors
    /// All that is wrong with it, never empty.
    pub fn preview(&self, edit: &Edit, options: ChangeOptions) -> Result<Plan, Vec<ApiError>> {
        self.shared.check(edit, options).map(|candidate| candidate.plan)
    }

    /// Makes a change. What is wrong with it is told at once, unless a change
    /// before it is still under way; then its operation tells.
    ///
    /// # Errors
    /// All that is wrong with it, never empty; nothing was changed.
    pub fn submit(&self, edit: Edit) -> Result<Operation, Vec<ApiError>> {
        self.submit_with(edit, ChangeOptions::default())
    }

    /// The same, made as these say.
    ///
    /// # Errors
    /// As [`Node::submit`].
    pub fn submit_with(
        &self,
        edit: Edit,
        options: ChangeOptions,
    ) -> Result<Operation, Vec<ApiError>> {
        // What the cluster has to say comes before the change, and it is asked about what is so then.
        // Until the change is queued.
        let is_node = self.shared.desired().config.cluster.is_some();
        let changing = is_node.then(|| self.begin_change_of_node()).transpose();
        let _changing = changing.map_err(|error| vec![error])?;
        let is_busy = !is_node && self.shared.operations.is_busy();
        let candidate = match is_busy {
            true => None,
            false => Some(self.shared.check(&edit, options)?),
        };
        // Before the cluster is changed: no more than so many are under way.
        let operation = self.shared.operations.add(&edit.kind(), &edit.subject(), true);
        let operation = operation.map_err(|error| vec![error])?;
        if let Some(candidate) = candidate {
            operation.set_plan(&candidate.plan, candidate.plan.steps.len());
            let (from, to) = (self.shared.desired(), &candidate.state.config);
            let configs = (&from.config, to);
            match self.shared.ask_cluster(&edit, configs, options.force, &operation) {
                Ok(pending) if pending.is_empty() => {}
                Ok(pending) => operation.report(pending),
                Err(error) => {
                    operation.withdraw();
                    return Err(vec![error]);
                }
            }
        }
        let id = operation.id();
        self.send(Command::Change { operation, edit: Box::new(edit), options })?;
        self.operation(id).ok_or_else(|| vec![lost()])
    }

    /// Waits until no other change of this node is under way, [`CHANGES_END`] at most.
    fn begin_change_of_node(&self) -> Result<Changing<'_>, ApiError> {
        let until = Instant::now() + CHANGES_END;
        let changing = self.shared.cluster.begin_change(CHANGES_END);
        let left = until.saturating_duration_since(Instant::now());
        let is_idle = |_: &Changing<'_>| self.shared.operations.wait_idle(left);
        changing.filter(is_idle).ok_or_else(|| {
            let text = "another change is under way; wait until it has ended";
            ApiError::new(ErrorCode::Conflict, text)
        })
    }

    /// Applies the daemon's host file if its text is not the one applied last; otherwise
    /// the stored state, with what was changed since, holds.
    ///
    /// # Errors
    /// All that is wrong with the file, with its lines; never empty.
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

    /// Hands a queue over to another processor. Dynamic VMQ takes it as being there, and
    /// moves it on when load or its configuration asks for that; in static mode it stays
    /// until the configuration changes.
    ///
    /// # Errors
    /// There is no such queue or processor.
    pub fn move_queue(
        &self,
        port: &str,
        side: QueueSide,
        index: u16,
        to: u16,
    ) -> Result<Operation, ApiError> {
        let queue = self.find_queue(port, side, index)?;
        if !self.shared.plane.processors().iter().any(|view| view.id.0 == to) {
            let text = format!("there is no processor {to}; `suimon processor list` shows them");
            return Err(ApiError::new(ErrorCode::NotFound, text).field("processor"));
        }
        let operation = self.shared.operations.add("queue move", &format!("queue/{port}"), true)?;
        let id = operation.id();
        let command = Command::MoveQueue { operation, queue, to: ProcessorId(to) };
        self.send(command).map_err(crate::checks::first_of)?;
        self.operation(id).ok_or_else(lost)
    }

    /// Goes on with work on disks that daemons before this one have not ended. Until then those disks
    /// are not opened: desired state is to be what the host file says first.
    pub fn go_on(&self) {
        // Who does not take it ends.
        let _ = self.send(Command::GoOn);
    }

    /// Begins work on a disk's file. What stands against it is told at once.
    ///
    /// # Errors
    /// There is no such disk, something else is being done to it, or it is used.
    pub fn work_on_disk(&self, disk: &Name, work: DiskWork) -> Result<Operation, ApiError> {
        self.shared.check_disk_work(disk, &work)?;
        let kind = format!("disk {}", work.verb());
        let operation = self.shared.operations.add(&kind, &format!("disk/{disk}"), true)?;
        let id = operation.id();
        let command = Command::DiskWork { operation, disk: disk.clone(), work };
        self.send(command).map_err(crate::checks::first_of)?;
        self.operation(id).ok_or_else(lost)
    }

    /// Begins to copy a disk, with what is written to it meanwhile, to the one of the same name
    /// that the other end of this connection serves over NBD: as long, and reading as zeros.
    /// Waits some seconds for the other end.
    ///
    /// # Errors
    /// There is no such disk, it does not work, something else is being done to it, or the
    /// other end does not serve such a disk.
    pub fn mirror_disk(&self, disk: &Name, stream: OwnedFd) -> Result<DiskMirror, ApiError> {
        DiskMirror::start(&self.shared, disk, stream)
    }

    /// Serves a disk over NBD to the other end of this connection, which copies to it. Returns
    /// at once.
    ///
    /// # Errors
    /// There is no such disk, it does not work, something else is being done to it, or
    /// descriptors are short.
    pub fn serve_disk(&self, disk: &Name, stream: OwnedFd) -> Result<ServedDisk, ApiError> {
        ServedDisk::start(&self.shared, disk, stream)
    }

    /// Begins to measure what a store can do. What stands against it is told at once.
    ///
    /// # Errors
    /// There is no such store, it is being measured, or its disks are used.
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
        self.send(command).map_err(crate::checks::first_of)?;
        self.operation(id).ok_or_else(lost)
    }

    /// Describes an image file of a store.
    ///
    /// # Errors
    /// There is no such store or file, it is in use, or cannot be opened.
    pub fn image_info(&self, store: &Name, request: &ImageRequest) -> Result<ImageInfo, ApiError> {
        self.shared.image_info(store, request)
    }

    /// Checks the metadata of an image file of a store.
    ///
    /// # Errors
    /// There is no such store or file, or it is in use.
    pub fn image_check(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageCheck, ApiError> {
        self.shared.image_check(store, request)
    }

    /// Repairs the metadata of an image file of a store, or takes a repair back.
    ///
    /// # Errors
    /// There is no such store or file, it is in use, or cannot be repaired or written.
    pub fn image_repair(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageChanges, ApiError> {
        self.shared.image_repair(store, request)
    }

    /// Records where the parent of an image file of a store is.
    ///
    /// # Errors
    /// There is no such store or file, it is in use, or is no child of the parent.
    pub fn image_relink(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageChanges, ApiError> {
        self.shared.image_relink(store, request)
    }

    fn find_queue(&self, port: &str, side: QueueSide, index: u16) -> Result<QueueId, ApiError> {
        let missing = || {
            let text = "there is no such queue now; `suimon queue list` shows those there are \
                        (where ports share a name it is written like `nic:web/rx/0`)";
            ApiError::new(ErrorCode::NotFound, text).about(format!("queue/{port}"))
        };
        let port = self.shared.port_by_label(port).ok_or_else(missing)?;
        let id = QueueId { port: port.id, direction: side.direction(&port.key), index };
        let exists = self.shared.plane.queues().iter().any(|view| view.id == id);
        exists.then_some(id).ok_or_else(missing)
    }

    /// Begins to copy what passes a port.
    ///
    /// # Errors
    /// There is no such port, or it is being captured already.
    pub fn capture(&self, key: &PortKey, options: CaptureOptions) -> Result<Capture, ApiError> {
        Capture::begin(&self.shared, key, options)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// An operation that was just begun.
    pub(crate) fn known_operation(&self, id: u64) -> Result<Operation, ApiError> {
        self.operation(id).ok_or_else(lost)
    }

    pub(crate) fn send(&self, command: Command) -> Result<(), Vec<ApiError>> {
        self.commands.send(command).map_err(|_| {
            let text = "the daemon is stopping, or its control thread has died; see its log";
            vec![ApiError::new(ErrorCode::Internal, text)]
        })
    }

    /// Takes a node out of the cluster that is gone for good.
    ///
    /// # Errors
    /// There is none of that name, it lives, or the cluster does not answer.
    pub fn remove_cluster_node(&self, node: &str) -> Result<(), ApiError> {
        self.shared.remove_cluster_node(node)
    }

    /// Begins to do something with a VM. What stands against it is told at once.
    ///
    /// # Errors
    /// There is no such VM, or it does not fit what the VM does.
    pub fn work_on_vm(&self, vm: &Name, work: VmWork) -> Result<Operation, ApiError> {
        self.shared.check_vm_work(vm, work)?;
        let kind = format!("vm {}", work.verb());
        let operation = self.shared.operations.add(&kind, &format!("vm/{vm}"), false)?;
        let id = operation.id();
        self.shared.begin_vm_work(vm, work, operation);
        self.operation(id).ok_or_else(lost)
    }

    /// A connection to a VM's serial console. One at a time.
    ///
    /// # Errors
    /// There is no such VM, it does not run, or somebody has its console.
    pub fn vm_console(&self, vm: &Name) -> Result<OwnedFd, ApiError> {
        self.shared.vm_console(vm)
    }

    /// What the agent in a VM's guest tells, asked now: it may take some seconds.
    ///
    /// # Errors
    /// There is no such VM, it does not run, or no agent answers in its guest.
    pub fn vm_guest(&self, vm: &Name) -> Result<VmGuest, ApiError> {
        self.shared.vm_guest(vm)
    }

    /// Writes an event of a system call that a thread of the daemon was refused.
    pub fn tell_refused_call(&self, refused: &RefusedCall) {
        self.shared.events.append(vec![confinement::refused(refused)]);
    }

    /// Asks an operation to stop; returns it as it is now.
    pub fn cancel_operation(&self, id: u64) -> Option<Operation> {
        self.shared.operations.cancel(id)
    }

    /// Ends the change under way, closes all devices and returns. TAPs stay.
    /// Status can still be read; changes are refused from now on.
    pub fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        self.shared.stop_draining();
        // Fails only if the thread has ended already.
        let _ = self.commands.send(Command::Stop);
        if thread.join().is_err() {
            tracing::error!("the control thread had died of a defect");
        }
        self.shared.stop_cluster();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The host as stored desired state has it, so that the plane can be started with its
/// processors; `None` if nothing is stored.
///
/// # Errors
/// The store is damaged.
pub fn stored_host(store: &dyn StateStore) -> Result<Option<HostSection>, StoreError> {
    Ok(load_state(store)?.map(|state| state.config.host))
}

struct EndTeller(Arc<Shared>);

impl Drop for EndTeller {
    fn drop(&mut self) {
        self.0.listener.handle_end();
    }
}

fn lost() -> ApiError {
    ApiError::new(ErrorCode::Internal, "the operation was forgotten before it could be shown")
}
