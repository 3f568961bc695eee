//! Execution of clients' requests.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use suimon_ports::{VmError, VmErrorKind, VmIdentity};
use suimon_quantity::PciAddress;

use super::launcher_user::check_user;
use super::starter::Starter;
use crate::messages::{receive_message, send_message, wait_readable};
use crate::wire::{Envelope, PROTOCOL, Reply, Request};

/// Time limit for a killed process to end. A process that blocks in the kernel may exceed it.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Executes requests of a client until the client disconnects or sends an invalid message.
pub(crate) fn serve(starter: &Starter, client: BorrowedFd<'_>) {
    while let Ok(Some(envelope)) = receive_message::<Envelope>(client) {
        let answer = if envelope.protocol == PROTOCOL {
            handle(starter, envelope.request, client)
        } else {
            let daemon_protocol = envelope.protocol;
            let text = format!(
                "the VM launcher has protocol version {PROTOCOL}, the daemon {daemon_protocol}; stop the \
                 launcher (VMs keep running) and restart the daemon"
            );
            Err(VmError::new(VmErrorKind::Host, text))
        };
        let answer = answer.unwrap_or_else(Reply::from);
        if send_message(client, &answer).is_err() {
            give_up(starter, &answer);
            return;
        }
    }
}

/// Kills the started VM of `answer`, because the client disconnected before it received the reply.
/// Otherwise the VM might remain unnoticed: a new daemon may have listed the VMs before this one
/// existed.
fn give_up(starter: &Starter, answer: &Reply) {
    let Reply::Started(started) = answer else { return };
    let vm = started.identity.name.as_str();
    tracing::warn!(vm, "the client that started the VM has disconnected; the VM is ended");
    if let Err(error) = kill(starter, &started.identity) {
        tracing::error!(vm, %error, "a VM without an owner is running");
    }
}

fn handle(starter: &Starter, request: Request, client: BorrowedFd<'_>) -> Result<Reply, VmError> {
    match request {
        Request::Probe(spec) => starter.probe(&spec).map(|_| Reply::Done),
        Request::Prepare { folder, user } => {
            check_user(user, starter.launcher_user)?;
            let _starts = starter.lock_starts();
            check_stopped(starter, &folder)?;
            starter.root.prepare(&folder, user).map(|()| Reply::Done)
        }
        Request::Start(spec) => starter.start(&spec).map(Reply::Started),
        Request::Find(identity) => {
            let vm = starter.registry.find(&identity)?;
            match vm.poll_end() {
                Some(exit) => Err(connection_lost(&identity, &exit.text())),
                None => Ok(Reply::Done),
            }
        }
        Request::Kill(identity) => kill(starter, &identity).map(|()| Reply::Done),
        Request::Watch(identity) => watch(starter, &identity, client),
        Request::Remove { folder } => {
            let _starts = starter.lock_starts();
            check_stopped(starter, &folder)?;
            starter.registry.lock().retain(|_, vm| vm.identity.folder != folder);
            starter.root.remove(&folder).map(|()| Reply::Done)
        }
        Request::AssignVf { identity, vf, memory_bytes } => {
            let vm = starter.registry.find(&identity)?;
            let result =
                starter.vfs.assign_to_vm(&vm, address(&vf)?, memory_bytes, starter.launcher_user);
            result.map(|()| Reply::Done)
        }
        Request::RemoveVf { vf, vm } => {
            starter.vfs.remove_from_vm(address(&vf)?, &vm).map(|()| Reply::Done)
        }
        Request::List => {
            let running = starter.registry.running();
            Ok(Reply::Vms(running.iter().map(|vm| vm.identity.clone()).collect()))
        }
    }
}

fn address(text: &str) -> Result<PciAddress, VmError> {
    text.parse().map_err(|error| VmError::new(VmErrorKind::Refused, format!("{text:?}: {error}")))
}

fn connection_lost(identity: &VmIdentity, reason: &str) -> VmError {
    let text = format!("VM {} has ended: {reason}", identity.name);
    VmError::new(VmErrorKind::NotRunning, text)
}

/// Checks that no running VM uses the folder.
fn check_stopped(starter: &Starter, folder: &Path) -> Result<(), VmError> {
    let running = starter.registry.running();
    match running.iter().find(|vm| vm.identity.folder == folder) {
        Some(vm) => {
            let text = format!(
                "VM {} is running in folder {}; stop it first",
                vm.identity.name,
                folder.display()
            );
            Err(VmError::new(VmErrorKind::AlreadyRunning, text))
        }
        None => Ok(()),
    }
}

fn kill(starter: &Starter, identity: &VmIdentity) -> Result<(), VmError> {
    let vm = starter.registry.find(identity)?;
    vm.kill(KILL_LIMIT).map_err(|error| {
        let (name, process) = (&identity.name, identity.pid);
        let text = format!("VM {name}: process {process} does not end: {error}");
        VmError::new(VmErrorKind::Timeout, text)
    })?;
    starter.registry.maintain(&starter.starts);
    Ok(())
}

/// Blocks until the VM's process has ended, and returns how. Kills the process when a message from
/// the client arrives.
fn watch(
    starter: &Starter,
    identity: &VmIdentity,
    client: BorrowedFd<'_>,
) -> Result<Reply, VmError> {
    let vm = starter.registry.find(identity)?;
    loop {
        if let Some(exit) = vm.poll_end() {
            starter.registry.maintain(&starter.starts);
            return Ok(Reply::Ended(exit));
        }
        let [has_ended, has_words] = wait_readable([vm.descriptor(), client.as_fd()], None)
            .map_err(|error| VmError::new(VmErrorKind::Host, error.to_string()))?;
        if has_ended || !has_words {
            continue;
        }
        match receive_message::<()>(client) {
            Ok(Some(())) => {
                let _ = vm.kill(KILL_LIMIT);
            }
            _ => return Err(VmError::new(VmErrorKind::Refused, "the client disconnected")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;

    use super::*;
    use crate::launcher::folder::VmFolderRoot;
    use crate::launcher::launcher_user::LauncherUser;
    use crate::launcher::vm_process::VmProcess;
    use crate::process_facts::start_ticks;

    #[test]
    fn a_vm_is_known_until_its_folder_is_removed() {
        let root_folder = tempfile::tempdir().unwrap();
        let root = VmFolderRoot::open(root_folder.path(), LauncherUser::Unprivileged).unwrap();
        let starter = Starter::for_test(root, LauncherUser::Unprivileged);
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let names: Vec<String> = (0..10).map(|number| format!("vm{number}")).collect();
        for name in &names {
            let folder = root_folder.path().join(name);
            starter.root.prepare(&folder, 0).unwrap();
            let identity = VmIdentity {
                name: name.clone(),
                folder: folder.clone(),
                pid: child.id(),
                started_ticks: start_ticks(child.id()).unwrap(),
            };
            let folder = starter.root.find(&folder).unwrap();
            let vm = VmProcess::open(identity, folder, false).unwrap();
            starter.registry.lock().insert(name.clone(), Arc::new(vm));
        }
        let remove = |name: &String| {
            let folder = root_folder.path().join(name);
            handle(&starter, Request::Remove { folder }, starter.root.as_fd())
        };
        let rejected = names.iter().map(remove).filter_map(Result::err);
        assert!(rejected.map(|error| error.kind).eq([VmErrorKind::AlreadyRunning; 10]));
        child.kill().unwrap();
        child.wait().unwrap();
        for name in &names {
            remove(name).unwrap();
            assert!(!root_folder.path().join(name).exists());
        }
        assert!(starter.registry.lock().is_empty());
    }
}
