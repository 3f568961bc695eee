/** Table of teams. */
import type { TeamStatus } from "../../api/types";
import { DataTable } from "../../components/DataTable";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { speed } from "../../units/units";
import { Health } from "./PortTables";

export function TeamTable(props: { teams: readonly TeamStatus[] }) {
  const { t } = useTexts();
  return (
    <DataTable
      label={t("network.teams")}
      rows={props.teams}
      id={(team) => team.config.name}
      columns={[
        { title: t("column.name"), cell: (team) => <a href={link("teams", team.config.name)}>{team.config.name}</a>, sort: (team) => team.config.name },
        { title: t("team.mode"), cell: (team) => team.config.mode },
        { title: t("team.algorithm"), cell: (team) => team.config.algorithm ?? "dynamic" },
        { title: t("port.switch"), cell: (team) => team.switch ?? "–" },
        { title: t("column.state"), cell: (team) => <Health condition={team.condition} /> },
        { title: t("team.active"), cell: (team) => t("tile.of", { part: team.members.filter((member) => member.state === "active").length, all: team.members.length }) },
        { title: t("team.speed"), cell: (team) => speed(team.speed_mbps), isNumber: true },
        { title: t("team.partner"), cell: (team) => team.lacp_partner ? <code>{team.lacp_partner.system}</code> : "–" },
      ]}
    />
  );
}
