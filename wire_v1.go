package fermata

import _ "github.com/fermata-run/fermata/internal/api/v1" // the wire of v1; without this line and that folder there is none
