//! One test for each page. A page without a test fails [`every_page_has_a_test`].

use std::collections::BTreeSet;
use std::fs;

use crate::host::root;
use crate::runner::execute;

/// Folders in which every page is executed.
const FOLDERS: [&str; 2] = ["docs/tutorials", "docs/how-to"];

/// Defines a test for each page, and the list of all of them.
macro_rules! pages {
    (short { $($short:ident: $short_page:literal,)* } full { $($full:ident: $full_page:literal,)* }) => {
        const PAGES: &[&str] = &[$($short_page,)* $($full_page,)*];
        $(#[test] fn $short() { execute($short_page); })*
        mod full {
            $(#[test] fn $full() { super::execute($full_page); })*
        }
    };
}

// Pages that take longer than about 20 s are in the full tier.
pages! {
    short {
        attach_a_vm: "docs/how-to/attach-a-vm.md",
        back_up: "docs/how-to/back-up.md",
        cap_a_disk: "docs/how-to/cap-a-disk.md",
        cluster_setup: "docs/how-to/cluster-setup.md",
        console_and_api_access: "docs/how-to/console-and-api-access.md",
        daemon_does_not_start: "docs/how-to/daemon-does-not-start.md",
        find_the_worker_of_a_queue: "docs/how-to/find-the-worker-of-a-queue.md",
        first_guarantee: "docs/tutorials/first-guarantee.md",
        guarantee_a_minimum: "docs/how-to/guarantee-a-minimum.md",
        image_files: "docs/how-to/image-files.md",
        install: "docs/how-to/install.md",
        kernel_path: "docs/how-to/kernel-path.md",
        nbd_clients: "docs/how-to/nbd-clients.md",
        offloads: "docs/how-to/offloads.md",
        power_plans: "docs/how-to/power-plans.md",
        readme: "README.md",
        record_and_replay: "docs/how-to/record-and-replay.md",
        recover_from_a_full_store: "docs/how-to/recover-from-a-full-store.md",
        respond_to_events: "docs/how-to/respond-to-events.md",
        snapshots_and_jobs: "docs/how-to/snapshots-and-jobs.md",
        sriov_with_fallback: "docs/how-to/sriov-with-fallback.md",
        stores_and_disks: "docs/how-to/stores-and-disks.md",
        switches_and_vlans: "docs/how-to/switches-and-vlans.md",
        team_uplinks_with_lacp: "docs/how-to/team-uplinks-with-lacp.md",
        teams: "docs/how-to/teams.md",
        uplinks_over_af_xdp: "docs/how-to/uplinks-over-af-xdp.md",
        use_with_libvirt: "docs/how-to/use-with-libvirt.md",
        vmq: "docs/how-to/vmq.md",
        worker_time: "docs/how-to/worker-time.md",
    }
    full {
        diagnose_a_slow_disk: "docs/how-to/diagnose-a-slow-disk.md",
        first_cluster: "docs/tutorials/first-cluster.md",
        first_host: "docs/tutorials/first-host.md",
        migrate_a_vm: "docs/how-to/migrate-a-vm.md",
        replace_a_node: "docs/how-to/replace-a-node.md",
        run_vms: "docs/how-to/run-vms.md",
        scrape_metrics: "docs/how-to/scrape-metrics.md",
        upgrade_the_daemon: "docs/how-to/upgrade-the-daemon.md",
    }
}

#[test]
fn every_page_has_a_test() {
    let mut pages = BTreeSet::from(["README.md".to_owned()]);
    for folder in FOLDERS {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                pages.insert(format!("{folder}/{name}"));
            }
        }
    }
    let tested: BTreeSet<String> = PAGES.iter().map(|&page| page.to_owned()).collect();
    let missing: Vec<_> = pages.difference(&tested).collect();
    let surplus: Vec<_> = tested.difference(&pages).collect();
    assert!(missing.is_empty(), "without a test in {}: {missing:?}", file!());
    assert!(surplus.is_empty(), "in {}, and not in the repository: {surplus:?}", file!());
}
