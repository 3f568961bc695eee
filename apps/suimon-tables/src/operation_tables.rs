//! Text output of operations and plans.

use suimon_contract::{Operation, OperationState, Plan};

use crate::columns;
use crate::table::{Table, or_dash};
use crate::units;

fn state(operation: &Operation) -> &'static str {
    match operation.state {
        OperationState::Running => "running",
        OperationState::Succeeded => "succeeded",
        OperationState::Failed => "failed",
        OperationState::Cancelled => "cancelled",
    }
}

/// Returns a table with one row per operation.
pub fn table(operations: &[Operation]) -> Table {
    let mut table = Table::new(&columns::OPERATIONS);
    for operation in operations {
        table.add_row([
            operation.id.to_string(),
            operation.kind.clone(),
            operation.subject.clone(),
            state(operation).to_owned(),
            format!("{}/{}", operation.steps_done, operation.steps_total),
            units::timestamp(operation.started_unix_ms),
        ]);
    }
    table
}

/// Returns the complete state of an operation.
pub fn details(operation: &Operation) -> String {
    let mut text = format!(
        "id       {}\nkind     {}\nsubject  {}\nstate    {}\nsteps    {}/{}\nstep     {}\n\
         started  {}\nended    {}\n",
        operation.id,
        operation.kind,
        operation.subject,
        state(operation),
        operation.steps_done,
        operation.steps_total,
        or_dash(operation.current_step.as_deref()),
        units::timestamp(operation.started_unix_ms),
        or_dash(operation.ended_unix_ms.map(units::timestamp)),
    );
    if let Some(error) = &operation.error {
        text.push_str(&format!("error    {error}\n"));
    }
    if operation.details_dropped {
        text.push_str(
            "details  dropped: the daemon keeps the plans and reports of later operations\n",
        );
    }
    for line in &operation.report {
        text.push_str(&format!("report   {line}\n"));
    }
    if let Some(plan) = &operation.plan {
        text.push('\n');
        text.push_str(&plan_text(plan));
    }
    text
}

/// Formats the steps of a plan, one per line.
pub fn plan_text(plan: &Plan) -> String {
    if plan.is_empty() {
        return "nothing to change\n".to_owned();
    }
    plan.steps.iter().map(|step| format!("{step}\n")).collect()
}

#[cfg(test)]
mod tests {
    use suimon_contract::{ApiError, ErrorCode, HostConfig, parse_toml};

    use super::*;

    #[test]
    fn operations_are_shown_with_their_end() {
        let operation = Operation {
            id: 7,
            kind: "nic set".to_owned(),
            subject: "nic/web".to_owned(),
            state: OperationState::Failed,
            steps_done: 1,
            steps_total: 2,
            current_step: None,
            plan: None,
            report: vec!["2 blocks are not referred to".to_owned()],
            warnings: Vec::new(),
            error: Some(ApiError::new(ErrorCode::DeviceMissing, "there is no device eth9")),
            details_dropped: false,
            started_unix_ms: 0,
            ended_unix_ms: Some(1500),
        };
        insta::assert_snapshot!(table(core::slice::from_ref(&operation)).render(), @r"
        ID  KIND     SUBJECT  STATE   STEPS  STARTED
         7  nic set  nic/web  failed    1/2  1970-01-01T00:00:00.000Z
        ");
        insta::assert_snapshot!(details(&operation), @r"
        id       7
        kind     nic set
        subject  nic/web
        state    failed
        steps    1/2
        step     –
        started  1970-01-01T00:00:00.000Z
        ended    1970-01-01T00:00:01.500Z
        error    there is no device eth9
        report   2 blocks are not referred to
        ");
        let dropped =
            Operation { report: Vec::new(), error: None, details_dropped: true, ..operation };
        insta::assert_snapshot!(details(&dropped), @r"
        id       7
        kind     nic set
        subject  nic/web
        state    failed
        steps    1/2
        step     –
        started  1970-01-01T00:00:00.000Z
        ended    1970-01-01T00:00:01.500Z
        details  dropped: the daemon keeps the plans and reports of later operations
        ");
    }

    #[test]
    fn plans_are_lists_of_marked_steps() {
        let before = parse_toml(
            "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[switch]]\nname = \"old\"\n\
             kind = \"private\"\n[[nic]]\nname = \"web\"\nswitch = \"lan\"\nbackend = \"tap\"\n\
             vlan = 10\n[[nic]]\nname = \"db\"\nswitch = \"lan\"\nbackend = \"tap\"\n",
            None,
        )
        .unwrap();
        let after = parse_toml(
            "[[switch]]\nname = \"lan\"\nkind = \"private\"\n[[nic]]\nname = \"web\"\n\
             switch = \"lan\"\nbackend = \"tap\"\nvlan = 20\nmtu = 9000\n[[nic]]\nname = \"db\"\n\
             switch = \"lan\"\nbackend = \"tap\"\nqueues = 4\n[[nic]]\nname = \"new\"\n\
             switch = \"lan\"\nbackend = \"tap\"\n",
            None,
        )
        .unwrap();
        insta::assert_snapshot!(plan_text(&Plan::between(&before, &after)), @r"
        ~ nic/web change live: vlan 10 → 20, mtu 1500 → 9000
        ± nic/db replace: queues 1 → 4
        + nic/new create
        - switch/old delete
        ");
        let nothing = Plan::between(&HostConfig::default(), &HostConfig::default());
        assert_eq!(plan_text(&nothing), "nothing to change\n");
    }
}
