// Keys that items of a type can have, to choose from while one is typed. Parameters in <…> may be left out.

const AGENT = [
  'agent.ping', 'agent.version', 'agent.hostname',
  'system.cpu.util[all,used,avg1]', 'system.cpu.util[all,user]', 'system.cpu.util[all,iowait]', 'system.cpu.load[all,avg1]', 'system.cpu.load[all,avg5]', 'system.cpu.num',
  'system.cpu.switches', 'system.cpu.intr', 'system.uptime', 'system.boottime', 'system.localtime', 'system.uname', 'system.hostname', 'system.sw.os[name]', 'system.sw.arch',
  'system.users.num', 'system.swap.size[,free]', 'system.swap.size[,pfree]', 'system.swap.in', 'system.swap.out', 'system.procs[running]', 'system.pressure[memory,some,avg10]',
  'vm.memory.size[available]', 'vm.memory.size[pavailable]', 'vm.memory.size[total]', 'vm.oom',
  'vfs.fs.size[/,used]', 'vfs.fs.size[/,pused]', 'vfs.fs.inode[/,pfree]', 'vfs.fs.discovery',
  'vfs.dev.read[sda,bytes]', 'vfs.dev.write[sda,bytes]', 'vfs.dev.util[sda]', 'vfs.dev.queue[sda]', 'vfs.dev.discovery',
  'vfs.file.exists[/path]', 'vfs.file.size[/path]', 'vfs.file.time[/path,modify]', 'vfs.file.contents[/path]', 'vfs.file.regmatch[/path,pattern]', 'vfs.file.cksum[/path]', 'vfs.file.md5sum[/path]',
  'net.if.in[eth0]', 'net.if.out[eth0]', 'net.if.in[eth0,errors]', 'net.if.out[eth0,errors]', 'net.if.total[eth0]', 'net.if.discovery',
  'net.tcp.listen[80]', 'net.udp.listen[53]', 'net.tcp.port[,80]',
  'proc.num[]', 'proc.num[name]', 'proc.mem[name]', 'kernel.openfiles', 'kernel.maxfiles', 'kernel.maxproc',
];

/** KEYS are the keys of a type that this server knows; what is left out may still work, such as the own keys of an agent. */
export const KEYS: Record<string, string[]> = {
  ZABBIX_PASSIVE: AGENT,
  ZABBIX_ACTIVE: [...AGENT, 'log[/var/log/syslog,error]', 'logrt["/var/log/app\\\\.log",error]', 'log.count[/var/log/syslog,error]'],
  SIMPLE: [
    'icmpping', 'icmppingloss', 'icmppingsec', 'net.tcp.service[http]', 'net.tcp.service[https]', 'net.tcp.service[ssh]', 'net.tcp.service[smtp]', 'net.tcp.service[ftp]', 'net.tcp.service[imap]',
    'net.tcp.service[pop]', 'net.tcp.service[nntp]', 'net.tcp.service[ldap]', 'net.tcp.service[telnet]', 'net.tcp.service[tcp,,5432]', 'net.tcp.service.perf[https]', 'net.udp.service[ntp]',
    'net.udp.service.perf[ntp]', 'web.certificate.get[example.com]',
  ],
  INTERNAL: [
    'zabbix[wcache,values]', 'zabbix[wcache,values,not supported]', 'zabbix[wcache,history,pused]', 'zabbix[wcache,trend,pused]', 'zabbix[vcache,buffer,pused]', 'zabbix[vcache,cache,hits]',
    'zabbix[vcache,cache,misses]', 'zabbix[rcache,buffer,pused]', 'zabbix[tcache,cache,phits]', 'zabbix[queue]', 'zabbix[queue,10m]', 'zabbix[process,poller,avg,busy]', 'zabbix[process,history syncer,avg,busy]',
    'zabbix[preprocessing_queue]', 'zabbix[lld_queue]', 'zabbix[hosts]', 'zabbix[items]', 'zabbix[items_unsupported]', 'zabbix[triggers]', 'zabbix[requiredperformance]', 'zabbix[uptime]',
    'zabbix[boottime]', 'zabbix[version]', 'zabbix[host,,items]', 'zabbix[host,,items_unsupported]', 'zabbix[host,,maintenance]', 'zabbix[host,agent,available]', 'zabbix[host,snmp,available]',
    'tidemark[histsync_values_total]', 'tidemark[storage_quota_used_percent]', 'tidemark[disk_used_percent]',
  ],
  SNMP_TRAP: ['snmptrap.fallback', 'snmptrap[linkDown]'],
  SSH: ['ssh.run[name]', 'ssh.run[name,{HOST.CONN},22,utf8]'],
  ODBC: ['db.odbc.select[name,,"postgres://{HOST.CONN}:5432/database"]', 'db.odbc.get[name,,"postgres://{HOST.CONN}:5432/database"]', 'db.odbc.discovery[name,,"postgres://{HOST.CONN}:5432/database"]'],
  JMX: ['jmx["java.lang:type=Memory","HeapMemoryUsage.used"]', 'jmx["java.lang:type=Threading","ThreadCount"]', 'jmx.get[beans,"java.lang:type=*"]', 'jmx.discovery[beans]'],
  IPMI: ['ipmi.get'],
};
