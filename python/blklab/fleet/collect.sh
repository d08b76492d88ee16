# Sent by `blklab fleet` to each machine. It only reads: the disks' files below /sys, two of /proc/sys,
# what udev knows of each disk, udev's rules of queues, tuned's profiles where one is active, and the
# size and times of the named recordings.
#
# An answer has one record a line, its fields separated by tabs:
#   f PATH         a file below /sys begins; its lines follow
#   t LINE         a line of that file, or of udev's properties
#   h HEX          bytes of that file
#   l PATH NAME    a link, with the last part of its target
#   d NAME PATH    a disk of /sys/block, with its directory below /sys
#   v PATH PATH    the disk's directory, and its device's
#   u NAME         udev's properties of a disk begin
#   p NAME VALUE   a value of /proc/sys
#   s PATH         a file of settings begins: of udev's rules or of tuned; its lines follow
#   w LINE         a line of it
#   r NUMBER TEXT  size and times of a recording; none if there is no such file
LC_ALL=C TZ=UTC
export LC_ALL TZ
sys=/sys
proc=/proc
root=
known=' '

lines() {
  while IFS= read -r line || [ -n "$line" ]; do
    printf 't\t%s\n' "$line"
  done
}

file() {
  if [ -f "$1" ] && [ -r "$1" ]; then
    printf 'f\t%s\n' "${1#"$sys"/}"
    lines < "$1"
  fi
}

bytes() {
  if [ -r "$1" ] && [ -n "$(command -v od)" ]; then
    printf 'f\t%s\n' "${1#"$sys"/}"
    # The model and the firmware of IDENTIFY DEVICE are in the first 154 bytes.
    od -An -v -tx1 -N 154 < "$1" | while IFS= read -r line; do printf 'h\t%s\n' "$line"; done
  fi
}

target() (
  cd -P "$1" && pwd -P
)

link() {
  if [ -d "$1" ] && to=$(target "$1"); then
    printf 'l\t%s\t%s\n' "${1#"$sys"/}" "${to##*/}"
  fi
}

node() {
  case $known in *" $1 "*) return ;; esac
  known="$known$1 "
  file "$1/uevent"
  for name in model vendor rev wwid serial cid name transport firmware_rev queue_depth; do
    file "$1/$name"
  done
  link "$1/subsystem"
  link "$1/driver"
}

disk() {
  at=$(target "$1") || return
  printf 'd\t%s\t%s\n' "${1##*/}" "${at#"$sys"/}"
  to=$(target "$1/device") && printf 'v\t%s\t%s\n' "${at#"$sys"/}" "${to#"$sys"/}"
  for name in dev size ro removable diskseq hidden; do file "$at/$name"; done
  for one in "$at"/queue/* "$at"/queue/iosched/*; do file "$one"; done
  for one in "$at"/mq/*/nr_tags; do file "$one"; done
  [ -e "$at/device/vpd_pg89" ] && bytes "$to/vpd_pg89"
  up=$at
  while :; do
    [ -e "$up/uevent" ] && node "$up"
    up=${up%/*}
    case $up in "$sys"/devices/*) ;; *) break ;; esac
  done
  if [ -n "$(command -v udevadm)" ]; then
    printf 'u\t%s\n' "${1##*/}"
    udevadm info --query=property --path="$at" < /dev/null | while IFS= read -r line; do
      case $line in
        ID_BUS=* | ID_TYPE=* | ID_MODEL=* | ID_SERIAL=* | ID_WWN=* | ID_SCSI=* | ID_ATA*)
          printf 't\t%s\n' "$line" ;;
      esac
    done
  fi
}

# $1: its path below the root.
settings() {
  if [ -f "$root/$1" ] && [ -r "$root/$1" ]; then
    printf 's\t%s\n' "$1"
    while IFS= read -r line || [ -n "$line" ]; do printf 'w\t%s\n' "$line"; done < "$root/$1"
  fi
}

of_queues() {
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in *queue/*) return 0 ;; esac
  done < "$1"
  return 1
}

# Of files with one name the first counts, and may mask the others.
rules() {
  seen=' '
  for top in etc run usr/local/lib usr/lib lib; do
    for one in "$root/$top"/udev/rules.d/*.rules; do
      name=${one##*/}
      case $name in *[!A-Za-z0-9_.@:+-]*) continue ;; esac
      case $seen in *" $name "*) continue ;; esac
      [ -e "$one" ] || continue
      seen="$seen$name "
      [ -f "$one" ] && [ -r "$one" ] && of_queues "$one" && settings "$top/udev/rules.d/$name"
    done
  done
}

profiles() {
  [ -f "$root/etc/tuned/active_profile" ] || return
  settings etc/tuned/active_profile
  for one in "$root"/etc/tuned/profiles/*/tuned.conf "$root"/etc/tuned/*/tuned.conf \
    "$root"/usr/lib/tuned/profiles/*/tuned.conf "$root"/usr/lib/tuned/*/tuned.conf; do
    name=${one#"$root"/}
    case $name in *[!A-Za-z0-9_.@:+/-]*) continue ;; esac
    settings "$name"
  done
}

recording() {
  if [ -f "$2" ]; then
    printf 'r\t%s\t%s\n' "$1" "$(stat -L -c '%s %y %z %i' -- "$2")"
  else
    printf 'r\t%s\t\n' "$1"
  fi
}

answer() {
  printf 'blklab-fleet\t1\n'
  for name in hostname osrelease; do
    IFS= read -r value < "$proc/sys/kernel/$name" && printf 'p\t%s\t%s\n' "kernel/$name" "$value"
  done
  for one in "$sys"/block/*; do
    if [ -e "$one/device" ] && [ -e "$one/queue/scheduler" ]; then disk "$one"; fi
  done
  rules
  profiles
}

