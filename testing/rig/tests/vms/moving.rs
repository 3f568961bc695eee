//! A VM is migrated between two daemons repeatedly while its guest sends over its NIC and writes to
//! its disk. `SUIMON_VM_MOVES` sets the number of migrations.

use std::fs;
use std::time::Duration;

use suimon_rig::{run, wait_until};

use crate::site::{Load, Node, OUTSIDE, PATIENCE, Site, begin_slowly, lost, qemus, refusal, state};

/// Number of migrations, unless `SUIMON_VM_MOVES` is set.
const MOVES: usize = 8;

mod full {
    #[test]
    fn a_vm_migrates_there_and_back_while_it_sends_and_writes() {
        let moves = std::env::var("SUIMON_VM_MOVES");
        super::migrate_repeatedly(moves.map_or(super::MOVES, |text| text.parse().unwrap()));
    }

    #[test]
    fn one_vm_runs_whichever_process_is_killed_during_a_migration() {
        super::one_vm_runs_whichever_process_is_killed_during_a_migration();
    }

    #[test]
    fn a_vm_that_cannot_be_migrated_is_refused_before_anything_changes() {
        super::a_vm_that_cannot_be_migrated_is_refused_before_anything_changes();
    }
}

fn migrate_repeatedly(moves: usize) {
    let mut site = Site::new();
    let mut guest = site.start();
    let mut load = Load::begin(&site, &mut guest);
    let (mut totals, mut stood, mut all_lost) = (Vec::new(), Vec::new(), 0);
    for _ in 0..moves {
        let before = load.replies().len();
        totals.push(site.migrate_vm(&mut guest));
        let after = load.replies().len();
        wait_until("replies", PATIENCE, || Ok(load.replies().len() > after + 50)).unwrap();
        let (lost_replies, in_a_row) = lost(&load.replies()[before..]);
        all_lost += lost_replies;
        stood.push(Duration::from_millis(10) * u32::try_from(in_a_row).unwrap());
        load.check(&mut guest);
        // The QoS policy of its disk was migrated too.
        let disk = site.here().daemon.json(&["disk", "show", "web"]).unwrap();
        assert_eq!(disk["config"]["qos_policy"], "silver");
    }
    load.end(&mut guest);
    for (label, times) in [("in all", &mut totals), ("without a reply", &mut stood)] {
        times.sort_unstable();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        eprintln!("{moves} moves, {label}: median {median:?}, longest {longest:?}");
    }
    eprintln!("{all_lost} requests, one in 10 ms, had no reply");
}

fn a_vm_that_cannot_be_migrated_is_refused_before_anything_changes() {
    let mut site = Site::new();
    let to_two = ["vm", "migrate", "web", "--to", "two"];
    assert!(refusal(site.here(), &to_two).contains("suimon vm start web"));
    let mut guest = site.start();
    let plan = site.here().daemon.ok(&["vm", "migrate", "web", "--to", "two", "--dry-run"]);
    assert!(plan.unwrap().contains("web"));
    assert!(refusal(site.here(), &["vm", "migrate", "web", "--to", "three"]).contains("three"));

    // An existing file of the same name at the destination is not overwritten.
    let file = site.rig.path("store-two/web.vhdx");
    fs::write(&file, "somebody's").unwrap();
    assert!(refusal(site.here(), &to_two).contains("has a file of this name"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "somebody's");
    fs::remove_file(&file).unwrap();

    // The other node lacks the switch, has another certificate name or another token, or does not
    // respond.
    let two = &mut site.nodes[1].daemon;
    two.ok(&["switch", "delete", "lan"]).unwrap();
    assert!(refusal(&site.nodes[0], &to_two).contains("lan"));
    let lan = ["switch", "create", "lan", "--kind", "external", "--uplink", "wan"];
    site.nodes[1].daemon.ok(&lan).unwrap();
    site.nodes[0].daemon.ok(&["node", "set", "two", "--server-name", "elsewhere"]).unwrap();
    assert!(refusal(&site.nodes[0], &to_two).contains("certificate"));
    site.nodes[0].daemon.ok(&["node", "set", "two", "--server-name", "localhost"]).unwrap();
    let token = site.rig.path("token-two");
    let own_token = fs::read_to_string(&token).unwrap();
    fs::write(&token, "another-token-than-that\n").unwrap();
    let refused = refusal(&site.nodes[0], &to_two);
    assert!(refused.contains("token"), "{refused}");
    fs::write(&token, own_token).unwrap();
    site.nodes[1].daemon.kill();
    assert!(refusal(&site.nodes[0], &to_two).contains("does not respond"));
    site.nodes[1].daemon.restart(&site.rig).unwrap();
    site.is_only_here();
    site.migrate_vm(&mut guest);
    assert!(guest.reaches(OUTSIDE).unwrap());
}

fn process_of(node: &Node) -> String {
    let output = run(&["pgrep", "-f", &format!("^[^ ]*qemu-system.*{}", node.vms.folder())]);
    output.unwrap().trim().to_owned()
}

fn one_vm_runs_whichever_process_is_killed_during_a_migration() {
    let mut site = Site::new();
    let mut guest = site.start();
    let mut load = Load::begin(&site, &mut guest);
    let operation = begin_slowly(&site);
    site.here().daemon.ok(&["operation", "cancel", &operation.to_string()]).unwrap();
    site.is_only_here();
    load.check(&mut guest);

    // Kills the destination's QEMU.
    begin_slowly(&site);
    run(&["kill", "-9", &process_of(site.there())]).unwrap();
    site.is_only_here();
    load.check(&mut guest);

    // Kills the destination's daemon.
    begin_slowly(&site);
    site.nodes[1].daemon.kill();
    site.nodes[1].daemon.restart(&site.rig).unwrap();
    site.is_only_here();
    load.check(&mut guest);

    // A later migration succeeds.
    site.migrate_vm(&mut guest);
    load.check(&mut guest);

    // Kills the source's daemon.
    if !site.choose_process_to_kill() {
        return;
    }
    load.end(&mut guest);
    // Kills the source's QEMU: the VM has then ended, and does not run at the destination.
    begin_slowly(&site);
    run(&["kill", "-9", &process_of(site.here())]).unwrap();
    wait_until("the VM to have ended", PATIENCE, || Ok(state(site.here()) == "stopped")).unwrap();
    wait_until("the end of the VM at the destination", PATIENCE, || {
        Ok(qemus(&site.there().vms) == 0)
    })
    .unwrap();
}
