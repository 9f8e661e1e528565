// Package live reads and writes servers of Redis and Valkey, single ones and clusters.
//
// Everything that is asked of a server goes through github.com/redis/go-redis/v9. What is loaded into one does not: it is
// a stream of bytes as redis-cli --pipe sends it, written by one goroutine and answered to another, with a bound on what
// is under way (pipe). Bytes stay until they are answered, so a connection that breaks is made anew and
// goes on with them; each piece can be sent twice and means the same.
//
// A record that is small goes as one RESTORE of a payload made here, in the newest form that the server takes; a server
// spends two thirds of the time on it that it spends on commands. A large one goes as commands of at most so many
// elements, to a name of its own in the same slot, and gets its name at the end: nobody sees a part of it, and
// the server answers others meanwhile.
package live
