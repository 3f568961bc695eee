/** Colours of series for the light and the dark theme, distinguishable with colour vision deficiency. */

const LIGHT = ["#0066cc", "#b1380b", "#1f7a4c", "#5e40be", "#8a6100", "#00677f", "#a30d52", "#4d4d4d"];
const DARK = ["#73bcf7", "#f4a582", "#6ec664", "#b2a3f0", "#e8c45a", "#5fd4e0", "#f28ab8", "#c7c7c7"];

export function seriesColor(index: number, dark: boolean): string {
  const colors = dark ? DARK : LIGHT;
  return colors[index % colors.length] ?? "#888888";
}
