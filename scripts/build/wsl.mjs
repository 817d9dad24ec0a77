// What oclif asks of wsl-utils at every start; the package itself would load child_process and fs/promises.
const os = process.getBuiltinModule('node:os')
const fs = process.getBuiltinModule('node:fs')
export const isWsl = process.platform === 'linux' && /microsoft/i.test(os.release()) && !fs.existsSync('/.dockerenv')
export const powerShellPath = async () => 'powershell.exe'
