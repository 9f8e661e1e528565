package format

// Server is a server whose data a format holds, as locations name it: pika3.5:/data.
type Server struct {
	Name   string // as it stands in locations
	Detail string // for people: versions, and what sets the server apart
}

// Served is a Format that locations also call by the names of its servers.
type Served interface {
	Format
	// Servers lists them, oldest first.
	Servers() []Server
	// For returns the format in the dialect of one of them: Limits are those of the server, and Create writes what it
	// opens. Name and what is read stay the same.
	For(server string) Format
	// Server is the name given to For, "" for what all servers open.
	Server() string
}

// Finder is a Served format that can tell from a dataset which of its servers wrote it, as far as its limits differ.
type Finder interface {
	// Found returns the format in the dialect of that server, or itself.
	Found(ev *Evidence) Format
}

// LocationName is what locations call a format: the server when it is one's dialect.
func LocationName(f Format) string {
	if s, ok := f.(Served); ok && s.Server() != "" {
		return s.Server()
	}
	return f.Name()
}

// Follower is a Format some of whose servers can follow, as replicas, the server that a dump was taken of.
type Follower interface {
	Format
	// Follows says under which conditions they can follow one whose data is in another format. ok is false when none can.
	Follows(source string) (conditions []string, ok bool)
}
