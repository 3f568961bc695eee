//! A VM whose disk is in a directory shared by both daemons is migrated between them repeatedly
//! while its guest writes. `SUIMON_VM_MOVES` sets the number of migrations.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::fs::{FlockOperation, fcntl_lock};
use suimon_rig::{run, wait_until};

use crate::site::{
    Load, NAMES, Node, PATIENCE, Site, begin_at, begin_slowly, lost, refusal, state,
};

/// Number of migrations, unless `SUIMON_VM_MOVES` is set.
const MOVES: usize = 8;

/// Returns the path of the image on the node that created it.
fn image(site: &Site) -> String {
    site.rig.path("store-one/web.vhdx")
}

fn disk_of(node: &Node) -> String {
    let result = node.daemon.json(&["disk", "show", "web"]);
    result.map_or_else(|_| String::new(), |disk| disk["state"].as_str().unwrap_or("").to_owned())
}

/// Ends and deletes the VM and its disk, and asserts that the image is valid and no other file
/// remains in the store.
fn check_image(site: &Site) {
    let daemon = &site.here().daemon;
    if state(site.here()) != "stopped" {
        daemon.ok(&["vm", "kill", "web"]).unwrap();
    }
    wait_until("the VM to have ended", PATIENCE, || Ok(state(site.here()) == "stopped")).unwrap();
    daemon.ok(&["vm", "delete", "web"]).unwrap();
    daemon.ok(&["disk", "delete", "web"]).unwrap();
    run(&["qemu-img", "check", "-f", "vhdx", &image(site)]).unwrap();
    let entries: Vec<_> = fs::read_dir(site.rig.path("store-one")).unwrap().collect();
    assert_eq!(entries.len(), 1, "files remain in the store: {entries:?}");
}

fn migrate_there_and_back(moves: usize) {
    let mut site = Site::with_shared_store();
    let mut guest = site.start();
    let mut load = Load::begin(&site, &mut guest);
    let number = fs::metadata(image(&site)).unwrap().ino();
    let to_two = ["vm", "migrate", "web", "--to", "two", "--dry-run"];
    let plan = site.here().daemon.ok(&to_two).unwrap();
    assert!(plan.contains("handed over: store s is shared by both nodes"), "{plan}");
    let (mut totals, mut stood) = (Vec::new(), Vec::new());
    for round in 0..moves {
        let before = load.replies().len();
        // The option to copy files has no effect, because none has to be copied. The first two
        // migrations are requested by draining the node.
        totals.push(match round {
            0 | 1 => site.drain_node(&mut guest, round == 1),
            _ => site.migrate_vm(&mut guest),
        });
        let after = load.replies().len();
        wait_until("replies", PATIENCE, || Ok(load.replies().len() > after + 50)).unwrap();
        let (_, in_a_row) = lost(&load.replies()[before..]);
        stood.push(Duration::from_millis(10) * u32::try_from(in_a_row).unwrap());
        load.check(&mut guest);
        let disk = site.here().daemon.json(&["disk", "show", "web"]).unwrap();
        assert_eq!(
            (&disk["config"]["qos_policy"], &disk["state"]),
            (&"silver".into(), &"ready".into())
        );
        assert_eq!(
            fs::metadata(image(&site)).unwrap().ino(),
            number,
            "the image file was replaced"
        );
    }
    load.end(&mut guest);
    for (label, times) in [("in all", &mut totals), ("without a reply", &mut stood)] {
        times.sort_unstable();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        eprintln!("{moves} moves, {label}: median {median:?}, longest {longest:?}");
    }
    drop(guest);
    check_image(&site);
}

fn a_store_that_is_not_the_same_is_refused() {
    let site = Site::with_shared_store();
    let _guest = site.start();
    let to_two = ["vm", "migrate", "web", "--to", "two"];
    let two = &site.nodes[1].daemon;
    two.ok(&["store", "set", "s", "--shared=false"]).unwrap();
    let message = refusal(site.here(), &to_two);
    assert!(message.contains("suimon store set s --shared=true"), "{message}");
    let elsewhere = site.rig.path("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    two.ok(&["store", "set", "s", "--shared=true", "--path", &elsewhere]).unwrap();
    let message = refusal(site.here(), &to_two);
    assert!(message.contains("is not the same directory"), "{message}");
    site.is_only_here();
}

fn a_vm_stays_if_its_disk_cannot_be_opened_on_the_other_node() {
    let site = Site::with_shared_store();
    let mut guest = site.start();
    let mut load = Load::begin(&site, &mut guest);
    // A low bandwidth, so that the image is locked before the destination opens its disk.
    let operation = begin_at(&site, 12 << 20).to_string();
    assert_eq!((disk_of(site.here()).as_str(), disk_of(site.there()).as_str()), ("ready", "away"));
    // Another process locks the image as a writer does: a process that has it open continues, and
    // no process can open it.
    let holder = File::open(image(&site)).unwrap();
    fcntl_lock(&holder, FlockOperation::NonBlockingLockShared).unwrap();
    let show_operation = || site.here().daemon.json(&["operation", "show", &operation]);
    wait_until("the migration to fail", PATIENCE, || Ok(show_operation()?["state"] == "failed"))
        .unwrap();
    let message = show_operation().unwrap()["error"]["message"].to_string();
    assert!(message.contains("cancelled the migration"), "{message}");
    site.is_only_here();
    drop(holder);
    wait_until("the disk to be ready", PATIENCE, || Ok(disk_of(site.here()) == "ready")).unwrap();
    load.check(&mut guest);
    load.end(&mut guest);
    drop(guest);
    check_image(&site);
}

/// The daemons are killed during a migration, and the VM continues on its node.
fn migrate_while_daemons_are_killed() {
    let mut site = Site::with_shared_store();
    let mut guest = site.start();
    let mut load = Load::begin(&site, &mut guest);
    begin_slowly(&site);
    site.nodes[1].daemon.kill();
    site.nodes[1].daemon.restart(&site.rig).unwrap();
    site.is_only_here();
    load.check(&mut guest);
    assert_eq!(NAMES[1 - site.at], "two");
    site.migrate_vm(&mut guest);
    load.check(&mut guest);
    let goes_on = site.choose_process_to_kill();
    wait_until("the disk to be ready", PATIENCE, || Ok(disk_of(site.here()) == "ready")).unwrap();
    if goes_on {
        load.end(&mut guest);
    }
    drop(guest);
    check_image(&site);
}

mod full {
    #[test]
    fn a_disk_on_a_shared_store_migrates_there_and_back_with_its_vm() {
        let moves = std::env::var("SUIMON_VM_MOVES");
        super::migrate_there_and_back(moves.map_or(super::MOVES, |text| text.parse().unwrap()));
    }

    #[test]
    fn a_vm_on_a_shared_store_runs_on_when_daemons_are_killed_during_its_migration() {
        super::migrate_while_daemons_are_killed();
    }

    #[test]
    fn a_vm_stays_if_its_disk_cannot_be_opened_on_the_other_node() {
        super::a_vm_stays_if_its_disk_cannot_be_opened_on_the_other_node();
    }

    #[test]
    fn a_store_that_is_not_the_same_is_refused() {
        super::a_store_that_is_not_the_same_is_refused();
    }
}
