//! Measurement of an array's capacity, like `suimon store measure` of a real store.

use suimon_quantity::Time;
use suimon_sim_kernel::{EventQueue, RandomStream, SECOND_NS};

use crate::storage::array::{Array, ArrayEvent, Io};
use crate::storage::client::Client;
use crate::storage::spec::{StorageScenario, cost};

/// Returns the clients of all disks of the scenario. Their disks are adjacent in the volume.
pub(crate) fn clients(scenario: &StorageScenario, seed: u64) -> Vec<Client> {
    let mut base = 0;
    let mut clients = Vec::new();
    for (number, disk) in scenario.disks().iter().enumerate() {
        let random = RandomStream::new(seed, &format!("client {number}"));
        clients.push(Client::new(disk.load.clone(), base, random));
        base += u64::from(disk.load.size_gb) << 30;
    }
    clients
}

/// Returns the rate of the array under unlimited demand of all clients without schedulers, in
/// normalised operations per second.
pub(crate) fn measure_capacity(scenario: &StorageScenario, seed: u64) -> u64 {
    let spec = &scenario.capacity;
    let mut array = Array::new(scenario.array.clone(), RandomStream::new(seed, "measured array"));
    let mut clients = clients(scenario, seed);
    let mut agenda: EventQueue<Option<ArrayEvent>> = EventQueue::new(Time::ZERO);
    let start = spec.settle_s * SECOND_NS;
    let until = start + spec.seconds * SECOND_NS;
    let send = |array: &mut Array, clients: &mut [Client], client: usize, now: Time| {
        let (offset, is_write) = clients[client].draw();
        array
            .send(now, Io { tag: client as u64, offset, bytes: clients[client].bytes(), is_write });
    };
    for client in 0..clients.len() {
        (0..spec.depth).for_each(|_| send(&mut array, &mut clients, client, Time::ZERO));
    }
    agenda.schedule(Time::ZERO, None);
    let mut completed = 0;
    while let Some(event) = agenda.next(Time::from_ns(until)) {
        let now = agenda.now();
        if let Some(event) = event {
            array.handle(now, event);
        }
        for tag in array.take_completed() {
            if now.as_ns() >= start {
                completed += u64::from(cost(clients[tag as usize].bytes()));
            }
            send(&mut array, &mut clients, tag as usize, now);
        }
        for (time, event) in array.take_planned() {
            agenda.schedule(time, Some(event));
        }
    }
    completed / spec.seconds
}
