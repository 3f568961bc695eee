//! A store on ext4, where the daemon allocates space in advance.

use suimon_rig::{Daemon, LoopFolder, NbdClient, Rig, run, wait_until};

use super::{
    Disk, FORMATS, FillerFile, MIB, ONE_WRITE_MAX, PATIENCE, check_mib, free_bytes, wait_queued,
    write_behind,
};

/// Space is allocated in advance on ext4, unless the store is nearly full.
#[test]
fn an_ext4_store_is_used_up_and_clients_wait() {
    let rig = Rig::new().unwrap();
    let folder = LoopFolder::make(&rig, &rig.path("ext4.image"), 96 * MIB).unwrap();
    let (store, socket) = (folder.path(), rig.path("nbd.sock"));
    let mut host = format!("[[store]]\nname = \"s\"\npath = \"{store}\"\n");
    for format in FORMATS {
        host += &format!(
            "[[disk]]\nname = \"{format}\"\nstore = \"s\"\nformat = \"{format}\"\n\
             kind = \"dynamic\"\nsize_bytes = \"128 MiB\"\nfull_wait_s = 3600\n\
             nbd = {{ socket = \"{socket}\" }}\n"
        );
    }
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    for format in FORMATS {
        let file = format!("{store}/{format}.{format}");
        let client = NbdClient::connect(&socket, format).unwrap();
        let mut disk = Disk { client, file };
        let filler = FillerFile::new(store, 8 * MIB);
        let wait_free_space = |free: u64| {
            wait_until("the free space to be reported", PATIENCE, || {
                let store = daemon.json(&["store", "show", "s"])?;
                Ok(store["free_bytes"].as_u64().is_some_and(|bytes| bytes <= free))
            })
        };
        wait_free_space(8 * MIB).unwrap();
        let before = disk.allocated();
        disk.write(0, 1, 64 << 10).unwrap();
        disk.client.flush().unwrap();
        let allocated = disk.allocated() - before;
        assert!(
            allocated <= 2 * ONE_WRITE_MAX,
            "{format}: a write of 64 KiB takes {allocated} bytes"
        );
        let writing = write_behind(&socket, format, (64, 12, 2));
        let full = wait_queued(&daemon, format);
        assert_eq!(full["state"], "full", "{full}");
        // Nearly all of the space was used before the store was full.
        let free = free_bytes(store);
        assert!(free < 2 * MIB, "{format}: {free} bytes are free");
        disk.check(0, 1);
        filler.remove();
        writing.join().unwrap().unwrap();
        let mut client = NbdClient::connect(&socket, format).unwrap();
        (64..76).for_each(|position| check_mib(&mut client, position, 2));
    }
    assert!(daemon.stop().unwrap().success());
    run(&["qemu-img", "check", "-f", "vhdx", &format!("{store}/vhdx.vhdx")]).unwrap();
}
