//! Lifecycle of the daemon: from the command line to the orderly stop.

use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use suimon_confine::{ConfinedWorkers, Confinement};
use suimon_contract::{ApiError, HostSection, parse_toml};
use suimon_netdev::SriovAdapters;
use suimon_node::{Node, NodeDependencies, placements, stored_host};
use suimon_ports::WorkerRuntime;
use suimon_power_files::PowerFiles;
use suimon_recording::RecordingSource;
use suimon_storage::StoragePlane;
use suimon_store::FileStore;
use suimon_switch::DataPlane;
use suimon_uring::UringSource;
use suimon_wait::{WorkerThreads, cpu_topology};
use suimond_api::host_file::read;
use suimond_api::{
    AccessFailures, ApiState, ConsoleInService, ListenerStarter, NotificationSender, Notifications,
    console_router, openapi_document, router, serve,
};
use suimond_lab::Lab;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::cli::Arguments;
use crate::confinement;
use crate::device_factory::HostDevices;
use crate::disk_factory::host_disks;
use crate::etcd_connector::EtcdConnector;
use crate::host_file::{self, HostFile};
use crate::notify::{StartProgress, notify};
use crate::peer_nodes::HostPeerNodes;
use crate::power_restoration::restore;
use crate::recorder::{Recorder, RecordingFile};
use crate::remedy;
use crate::socket_files::HostSocketFiles;
use crate::socket_threads::SocketThreads;
use crate::start_settings::{SharedStartSettings, StartSettings, lock_settings};
use crate::unix_socket::ApiSocket;
use crate::vm_factory::{LauncherConnection, run_launcher};
use crate::watchdog::{self, Heartbeat};

/// Number of threads of the async runtime. Requests are few and mostly wait.
const CONTROL_THREADS: usize = 2;
/// Largest number of threads for blocking calls: captures and calls to the host.
const BLOCKING_THREADS: usize = 64;
/// Delay before a failed device is retried for the first time.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Longest delay between attempts to open a failed device. QEMU reconnects within 1 s with
/// `reconnect` 1, and its rings within seconds under load.
const RECONNECT_MAX: Duration = Duration::from_secs(30);

/// Reasons for which the daemon ends with an error.
enum Stopped {
    /// The host or another daemon prevents operation.
    Host(anyhow::Error),
    /// The configuration is invalid.
    Refused(Vec<ApiError>),
}

impl From<anyhow::Error> for Stopped {
    fn from(error: anyhow::Error) -> Self {
        Self::Host(error)
    }
}

impl From<Vec<ApiError>> for Stopped {
    fn from(errors: Vec<ApiError>) -> Self {
        Self::Refused(errors)
    }
}

/// Runs the daemon, or the tool requested on the command line.
pub fn run(arguments: &Arguments) -> ExitCode {
    if let Some(tool) = &arguments.tool {
        return crate::image_tool::run(tool);
    }
    let result = if arguments.print_openapi {
        print_openapi()
    } else if arguments.print_metrics {
        print!("{}", suimond_metrics::page());
        Ok(())
    } else if arguments.restore_power {
        restore(arguments).map_err(Stopped::Host)
    } else if let (true, Some(file)) = (arguments.check, &arguments.config) {
        check(file)
    } else if let Some(socket) = &arguments.vm_launcher_socket {
        let launched = start_log(&arguments.log).and_then(|()| {
            run_launcher(socket, &arguments.vm_folder, arguments.vm_launcher_exits_when_unused)
        });
        launched.map_err(Stopped::Host)
    } else {
        start_log(&arguments.log).map_err(Stopped::Host).and_then(|()| serve_host(arguments))
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stopped::Host(error)) => {
            eprintln!("suimond: {error:#}");
            ExitCode::from(1)
        }
        Err(Stopped::Refused(errors)) => {
            for error in &errors {
                eprintln!("{error}");
            }
            let about_api =
                |error: &ApiError| matches!(error.resource.as_deref(), Some("api" | "console"));
            ExitCode::from(if errors.iter().all(about_api) { 2 } else { 3 })
        }
    }
}

fn print_openapi() -> Result<(), Stopped> {
    let document = openapi_document().context("the OpenAPI document cannot be written")?;
    print!("{document}");
    Ok(())
}

fn check(file: &Path) -> Result<(), Stopped> {
    let text = read(file)?;
    parse_toml(&text, Some(&file.display().to_string()))?;
    Ok(())
}

fn start_log(filter: &str) -> Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("--log: `{filter}` is not a log filter; try `info`"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    Ok(())
}

fn serve_host(arguments: &Arguments) -> Result<(), Stopped> {
    let from_file = HostFile::read(arguments.config.as_deref());
    let store = open_state(&arguments.state_dir, &from_file)?;
    let record = |path| RecordingFile::create(path, arguments.record_bytes_max);
    let recording = arguments.recording_file.as_deref().map(record).transpose()?;
    // The process has a single thread so far: see `ApiSocket::bind`.
    let socket = ApiSocket::bind(&arguments.socket)?;
    // Read before confinement restricts file access.
    let cpu_places = cpu_topology(&WorkerThreads.allowed_cpus());
    let stored_host = stored_host(&store).context("cannot read the stored configuration")?;
    let is_first_start = stored_host.is_none();
    let host = stored_host.map_or_else(|| from_file.host_section_for_first_start(), Ok)?;
    // Started before confinement prohibits starting programs.
    let launcher = LauncherConnection::find_or_start(&arguments.socket, host.effective_vm_folder());
    let sriov = SriovAdapters::new(&arguments.sysfs);
    let power = PowerFiles::new(&arguments.sysfs);
    let mut sysfs_files = sriov.vf_count_files();
    sysfs_files.push(power.settings_folder());
    let confinement = confine(arguments, &sysfs_files)?;

    let runtime: Arc<dyn WorkerRuntime> =
        Arc::new(ConfinedWorkers::new(WorkerThreads, confinement.clone()));
    let recorder = recording.map(|file| file.begin(&recording_source())).transpose()?;
    let sink = recorder.as_ref().map(Recorder::sink);
    let storage = StoragePlane::with_recording(Arc::new(UringSource), sink.clone());
    let plane = start_plane(&host, &runtime, &storage)?;
    let (sender, notifications) = NotificationSender::new();
    let sender = Arc::new(sender);
    let (reader, progress) = (confinement.clone(), StartProgress::default());
    let (threads, devices) = open_devices(&confinement, &arguments.state_dir)?;
    let node = Node::open(NodeDependencies {
        store: Arc::new(store),
        devices: devices.clone(),
        team_member_devices: devices,
        disks: host_disks(storage, &confinement, threads, &arguments.socket)
            .with_context(|| format!("--socket {}", arguments.socket.display()))?,
        vms: launcher.into_vm_dependencies(&confinement),
        power: Arc::new(power),
        sriov: Arc::new(sriov),
        peer_nodes: Arc::new(HostPeerNodes::default()),
        cluster_connector: Arc::new(EtcdConnector),
        socket_files: Arc::new(HostSocketFiles),
        plane: Arc::new(plane.clone()),
        clock: Arc::new(unix_time_ms),
        listener: sender.clone(),
        recording: sink,
        cpu_topology: cpu_places,
        cpus: runtime.allowed_cpus(),
        host_name: host_name(),
        confinement: Arc::new(move || confinement::status(&reader)),
        progress: progress.reporter(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        retry_first: RETRY_FIRST,
        guest_reconnect_window: RECONNECT_MAX,
    });
    let node = Arc::new(node.context("cannot apply the stored configuration")?);
    let heartbeat =
        watchdog::start(plane.clone()).context("cannot start the threads of the watchdog")?;
    let daemon = Served {
        node: &node,
        socket: &socket,
        sender: &sender,
        confinement,
        heartbeat,
        progress,
        from_file,
        is_first_start,
    };
    let result = serve_node(arguments, &daemon, notifications);
    node.stop();
    plane.stop();
    if let Some(recorder) = recorder {
        recorder.end();
    }
    result
}

/// Opens the state store in `state_dir`, which is created if it does not exist and the host file is
/// not refused.
fn open_state(state_dir: &Path, from_file: &HostFile) -> Result<FileStore, Stopped> {
    if !FileStore::exists_in(state_dir) {
        from_file.check_for_first_start()?;
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir).map_err(|error| {
        let remedy = remedy::path_error_remedy(&error, "--state-dir");
        anyhow!("--state-dir: cannot create {}: {error}; {remedy}", state_dir.display())
    })?;
    Ok(FileStore::open(state_dir)
        .with_context(|| format!("--state-dir {}", state_dir.display()))?)
}

/// Starts the threads that serve sockets of NICs and disks, and opens access to network devices.
fn open_devices(
    confinement: &Confinement,
    state_dir: &Path,
) -> Result<(SocketThreads, Arc<HostDevices>)> {
    let threads = SocketThreads::new(confinement)
        .context("cannot start the threads for sockets of NICs and disks")?;
    let devices = HostDevices::new(threads.vhost_user.clone(), state_dir)
        .context("cannot open the rtnetlink socket that reports changes of network devices")?;
    Ok((threads, Arc::new(devices)))
}

/// Returns the description of the daemon for a recording.
fn recording_source() -> RecordingSource {
    RecordingSource {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host_name(),
        started_unix_ms: unix_time_ms(),
    }
}

/// Starts the data plane with the configured workers. If that fails, starts it with the default of
/// one unpinned worker, which the node reports.
fn start_plane(
    host_section: &HostSection,
    runtime: &Arc<dyn WorkerRuntime>,
    storage: &StoragePlane,
) -> Result<DataPlane> {
    let start = |host: &HostSection| {
        let storage_tasks = Arc::new(storage.clone());
        DataPlane::start_with_tasks(&placements(host), Arc::clone(runtime), storage_tasks)
    };
    start(host_section)
        .or_else(|_| start(&HostSection::default()))
        .context("cannot start the workers (data-plane threads)")
}

/// Drops privileges that the daemon does not need, while it has a single thread. The API's socket
/// is already open.
fn confine(arguments: &Arguments, sysfs_files: &[PathBuf]) -> Result<Confinement> {
    if arguments.no_confine {
        tracing::warn!("--no-confine: the daemon keeps all privileges");
        return Ok(Confinement::off());
    }
    let hint = "the daemon cannot be confined; --no-confine starts it without confinement";
    let confinement = Confinement::new().context(hint)?;
    confinement.confine_process(sysfs_files).context(hint)?;
    Ok(confinement)
}

/// Components with which the daemon serves requests.
struct Served<'a> {
    node: &'a Arc<Node>,
    socket: &'a ApiSocket,
    sender: &'a NotificationSender,
    confinement: Confinement,
    heartbeat: Heartbeat,
    progress: StartProgress,
    from_file: HostFile,
    /// True if the state directory had no stored state. Then every error of the host file ends the
    /// daemon.
    is_first_start: bool,
}

fn serve_node(
    arguments: &Arguments,
    daemon: &Served<'_>,
    notifications: Notifications,
) -> Result<(), Stopped> {
    let Served { node, socket, sender, confinement, heartbeat, from_file, is_first_start, .. } =
        daemon;
    from_file.apply_at_start(node, *is_first_start)?;
    daemon.progress.end();
    node.finish_start();
    let config = node.config();
    let started = Arc::new(Mutex::new(StartSettings::from_config(&config)));
    let listeners = ListenerStarter {
        node: Arc::clone(node),
        is_first_start: *is_first_start,
        settings_record: Arc::new(SharedStartSettings(Arc::clone(&started))),
    };
    let state = ApiState {
        node: Arc::clone(node),
        notifications: notifications.clone(),
        console: ConsoleInService::default(),
        lab: Arc::new(Lab::new(config.lab.as_ref())),
        failures: AccessFailures::default(),
        host_file: arguments.config.as_deref().map(Arc::from),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONTROL_THREADS)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("suimond-api")
        .enable_all()
        .build()
        .context("cannot start the threads of the control plane")?;
    let result = runtime.block_on(async {
        // Before the first response: a client may signal the daemon as soon as it receives one.
        let signals = Signals::listen()?;
        let endpoints = router(state.clone());
        if let Some(api) = config.api {
            let endpoints = endpoints.clone();
            listeners
                .serve_api(api, endpoints, state.failures.clone(), notifications.clone())
                .await?;
        }
        let failures = state.failures.clone();
        let reporting = tokio::spawn(failures.report(Arc::clone(node), notifications.clone()));
        if let Some(console) = config.console {
            let (in_service, endpoints) = (state.console.clone(), endpoints.clone());
            let page = move |console| console_router(console, state, endpoints);
            listeners.serve_console(console, in_service, page, notifications.clone()).await?;
        }
        tokio::spawn(heartbeat.clone().increment_periodically());
        tokio::spawn(confinement::report_refused_calls(confinement.clone(), Arc::clone(node)));
        #[cfg(feature = "jemalloc")]
        tokio::spawn(crate::free_memory::return_free_pages_periodically());
        let listener = socket.listener().context("--socket")?;
        let serving = tokio::spawn(serve(listener, endpoints, notifications.clone()));
        notify("READY=1");
        tracing::info!(socket = %arguments.socket.display(), "serving");
        let result =
            signals.wait_for_end(arguments, &started, Arc::clone(node), notifications).await;
        notify("STOPPING=1");
        // Streams deliver the last event before they end.
        let stopping = Arc::clone(node);
        let _ = tokio::task::spawn_blocking(move || stopping.stop()).await;
        sender.signal_end();
        let _ = serving.await;
        let _ = reporting.await;
        result
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// Receivers of SIGTERM, SIGINT and SIGHUP. Before `listen` is called, these signals end the
/// process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("SIGINT")?,
            hang_up: signal(SignalKind::hangup()).context("SIGHUP")?,
        })
    }

    /// Returns when SIGTERM or SIGINT requests a stop. Until then, reloads the host file at each
    /// SIGHUP.
    async fn wait_for_end(
        mut self,
        arguments: &Arguments,
        started: &Mutex<StartSettings>,
        node: Arc<Node>,
        mut notifications: Notifications,
    ) -> Result<(), Stopped> {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return Ok(()),
                _ = self.interrupt.recv() => return Ok(()),
                _ = self.hang_up.recv() => reload(arguments, &node, started).await,
                () = notifications.wait_end() => {
                    let text = "the control thread panicked; restart the daemon";
                    return Err(Stopped::Host(anyhow::anyhow!(text)));
                }
            }
        }
    }
}

/// Reloads the host file. On errors, reports them and keeps the current state. Reports changes that
/// need a restart of the daemon.
async fn reload(arguments: &Arguments, node: &Arc<Node>, started: &Mutex<StartSettings>) {
    let file = arguments.config.clone();
    notify("RELOADING=1");
    let reloaded = node.clone();
    let applied =
        tokio::task::spawn_blocking(move || host_file::reload(&reloaded, file.as_deref())).await;
    match applied {
        Ok(Ok(())) => {
            tracing::info!(
                "SIGHUP: the host file was read again, and the files that it names, except those of \
                 [api] and [console]"
            );
        }
        Ok(Err(errors)) => {
            for error in errors {
                tracing::error!("SIGHUP: {error}");
            }
        }
        Err(error) => tracing::error!(%error, "SIGHUP: the host file was not applied"),
    }
    let changes = lock_settings(started).describe_changes(&node.config());
    for change in changes {
        tracing::warn!("SIGHUP: {change}");
    }
    notify("READY=1");
}

fn unix_time_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
