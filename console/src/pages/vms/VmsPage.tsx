export function VmsPage() { return null; }
